"""Reads the input, writes a new tensor: tiles share what they read, and nothing that they write."""
import torch
import triton
import triton.language as tl


@triton.jit
def _stencil(x_ptr, y_ptr, N, step, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    here = tl.load(x_ptr + i * step, mask=i < N, other=0.0)
    after = tl.load(x_ptr + (i + 1) * step, mask=i + 1 < N, other=0.0)
    tl.store(y_ptr + i, here + after, mask=i < N)


def kernel(x):
    y = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    _stencil[(triton.cdiv(x.shape[0], 256),)](x, y, x.shape[0], x.stride(0), BLOCK=256)
    return y
