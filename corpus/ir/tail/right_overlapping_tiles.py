"""The last tile is moved back to end with the vector: it writes elements of the tile before again, with equal values."""
import torch
import triton
import triton.language as tl


@triton.jit
def _scale(x_ptr, y_ptr, N, step, BLOCK: tl.constexpr):
    start = tl.minimum(tl.program_id(0).to(tl.int64) * BLOCK, tl.maximum(N - BLOCK, 0))
    i = start + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i * step, mask=i < N)
    tl.store(y_ptr + i, 2 * x + 1, mask=i < N)


def kernel(x):
    y = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    _scale[(triton.cdiv(x.shape[0], 256),)](x, y, x.shape[0], x.stride(0), BLOCK=256)
    return y
