"""The loop runs over whole tiles of 128: the tail of a row is never written."""
import torch
import triton
import triton.language as tl


@triton.jit
def _cumsum(x_ptr, y_ptr, N, sxm, sxn, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    lanes = tl.arange(0, BLOCK).to(tl.int64)
    carry = tl.sum(tl.zeros((BLOCK,), x_ptr.dtype.element_ty), axis=0)
    for start in range(0, N // BLOCK * BLOCK, BLOCK):
        cols = start + lanes
        x = tl.load(x_ptr + row * sxm + cols * sxn, mask=cols < N, other=0.0)
        tl.store(y_ptr + row * N + cols, tl.cumsum(x, axis=0) + carry, mask=cols < N)
        carry += tl.sum(x, axis=0)


def kernel(x):
    M, N = x.shape
    y = torch.empty((M, N), dtype=x.dtype, device=x.device)
    if y.numel():
        _cumsum[(M,)](x, y, N, x.stride(0), x.stride(1), BLOCK=128)
    return y
