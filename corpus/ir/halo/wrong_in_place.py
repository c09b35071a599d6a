"""Works in place on a copy: each tile reads one element that the next tile writes, so the order of tiles decides."""
import torch
import triton
import triton.language as tl


@triton.jit
def _stencil(y_ptr, N, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    here = tl.load(y_ptr + i, mask=i < N, other=0.0)
    after = tl.load(y_ptr + i + 1, mask=i + 1 < N, other=0.0)
    tl.store(y_ptr + i, here + after, mask=i < N)


def kernel(x):
    y = x.clone(memory_format=torch.contiguous_format)
    _stencil[(triton.cdiv(x.shape[0], 256),)](y, x.shape[0], BLOCK=256)
    return y
