"""Transpose that takes its input for row-major: right until somebody passes a transposed view."""

import torch
import triton
import triton.language as tl


@triton.jit
def transpose_kernel(x_ptr, y_ptr, m, n, x_row, x_col, TILE: tl.constexpr):
    rows = tl.program_id(0).to(tl.int64) * TILE + tl.arange(0, TILE)
    cols = tl.program_id(1).to(tl.int64) * TILE + tl.arange(0, TILE)
    tile = tl.load(
        x_ptr + rows[:, None] * n + cols[None, :] * 1,
        mask=(rows[:, None] < m) & (cols[None, :] < n),
        other=0,
    )
    tl.store(
        y_ptr + cols[:, None] * m + rows[None, :],
        tl.trans(tile),
        mask=(cols[:, None] < n) & (rows[None, :] < m),
    )


def kernel(x):
    m, n = x.shape
    y = torch.empty((n, m), dtype=x.dtype, device=x.device)
    if y.numel():
        grid = (triton.cdiv(m, 32), triton.cdiv(n, 32))
        transpose_kernel[grid](x, y, m, n, x.stride(0), x.stride(1), TILE=32)
    return y
