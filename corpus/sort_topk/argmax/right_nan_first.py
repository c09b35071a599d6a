"""Row argmax: the least index among the greatest, NaN before all, and rows of -inf alone stay inside the row."""

import torch
import triton
import triton.language as tl


@triton.jit
def argmax_kernel(x_ptr, i_ptr, n_cols, x_row, x_col, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * x_row + cols.to(tl.int64) * x_col, mask=mask, other=float("-inf")).to(tl.float32)
    nan = x != x
    any_nan = tl.max((nan & mask).to(tl.int32), axis=0) > 0
    peak = tl.max(tl.where(nan | (mask == 0), float("-inf"), x), axis=0)
    hit = mask & tl.where(any_nan, nan, x == peak)
    best = tl.min(tl.where(hit, cols, BLOCK), axis=0)
    tl.store(i_ptr + row, best.to(tl.int64))


def kernel(x):
    n_rows, n_cols = x.shape
    index = torch.empty((n_rows,), dtype=torch.int64, device=x.device)
    block = triton.next_power_of_2(n_cols)
    argmax_kernel[(n_rows,)](x, index, n_cols, x.stride(0), x.stride(1), BLOCK=block)
    return index
