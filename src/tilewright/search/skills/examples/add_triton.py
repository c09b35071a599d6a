"""A sum by Triton, its positive part by torch."""

import torch
import triton
import triton.language as tl


@triton.jit
def _add(x_ptr, y_ptr, z_ptr, N, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < N)
    y = tl.load(y_ptr + at, mask=at < N)
    tl.store(z_ptr + at, x + y, mask=at < N)


def kernel(x, y):
    x, y = x.contiguous(), y.contiguous()
    z = torch.empty_like(x)
    if z.numel():
        _add[(triton.cdiv(x.numel(), 256),)](x, y, z, x.numel(), BLOCK=256)
    return torch.relu(z)
