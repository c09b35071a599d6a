"""Row softmax for rows of any length: three sweeps over tiles, padding loaded as -inf, strides honoured."""

import torch
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(x_ptr, y_ptr, n_cols, x_row, x_col, y_row, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    x_ptr += row * x_row
    y_ptr += row * y_row
    lane = tl.arange(0, BLOCK).to(tl.int64)

    top = tl.full((BLOCK,), float("-inf"), tl.float32)
    for start in range(0, n_cols, BLOCK):
        cols = start + lane
        x = tl.load(x_ptr + cols * x_col, mask=cols < n_cols, other=float("-inf")).to(tl.float32)
        top = tl.maximum(top, x)
    peak = tl.max(top, axis=0)

    # A NaN that the maximum passed over, and a row of -inf alone, both turn the sum into NaN, as in PyTorch.
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n_cols, BLOCK):
        cols = start + lane
        x = tl.load(x_ptr + cols * x_col, mask=cols < n_cols, other=float("-inf")).to(tl.float32)
        total += tl.exp(x - peak)
    scale = 1.0 / tl.sum(total, axis=0)

    for start in range(0, n_cols, BLOCK):
        cols = start + lane
        x = tl.load(x_ptr + cols * x_col, mask=cols < n_cols, other=float("-inf")).to(tl.float32)
        y = tl.exp(x - peak) * scale
        tl.store(y_ptr + cols, y.to(y_ptr.dtype.element_ty), mask=cols < n_cols)


def kernel(x):
    n_rows, n_cols = x.shape
    y = torch.empty((n_rows, n_cols), dtype=x.dtype, device=x.device)
    if n_rows == 0 or n_cols == 0:
        return y
    block = min(triton.next_power_of_2(n_cols), 4096)
    softmax_kernel[(n_rows,)](x, y, n_cols, x.stride(0), x.stride(1), y.stride(0), BLOCK=block)
    return y
