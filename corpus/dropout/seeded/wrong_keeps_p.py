"""Dropout that keeps with probability p: the same thing at the default of one half."""

import torch
import triton
import triton.language as tl


@triton.jit
def dropout_kernel(x_ptr, y_ptr, n, p, seed, BLOCK: tl.constexpr):
    lane = tl.arange(0, BLOCK)
    offs = tl.program_id(0) * BLOCK + lane
    mask = offs < n
    x = tl.load(x_ptr + offs, mask=mask, other=0.0)
    keep = tl.rand(seed, offs) < p
    y = tl.where(keep, x / (1.0 - p), 0.0)
    tl.store(y_ptr + offs, y, mask=mask)


def kernel(x, p, seed):
    x = x.contiguous()
    y = torch.empty_like(x)
    n = x.numel()
    dropout_kernel[(triton.cdiv(n, 1024),)](x, y, n, p, seed, BLOCK=1024)
    return y
