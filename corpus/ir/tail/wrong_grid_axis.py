"""Tiles are laid along the second axis of the grid, which holds 65,535 programs: longer vectors can't be launched."""
import torch
import triton
import triton.language as tl


@triton.jit
def _scale(x_ptr, y_ptr, N, BLOCK: tl.constexpr):
    i = tl.program_id(1).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < N)
    tl.store(y_ptr + i, 2 * x + 1, mask=i < N)


def kernel(x):
    x = x.contiguous()
    y = torch.empty_like(x)
    _scale[(1, triton.cdiv(x.shape[0], 256))](x, y, x.shape[0], BLOCK=256)
    return y
