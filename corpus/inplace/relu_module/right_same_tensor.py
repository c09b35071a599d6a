"""Overwrites x and returns it, exactly as the reference does."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def bias_relu_kernel(x_ptr, b_ptr, n, width, BLOCK: tl.constexpr):
    offs = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    x = tl.load(x_ptr + offs, mask=mask, other=0.0)
    b = tl.load(b_ptr + offs % width, mask=mask, other=0.0)
    tl.store(x_ptr + offs, tl.maximum(x + b, 0.0), mask=mask)


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.bias = nn.Parameter(torch.randn(features))

    def forward(self, x):
        n, width = x.numel(), x.shape[-1]
        bias_relu_kernel[(triton.cdiv(n, 128),)](x, self.bias, n, width, BLOCK=128)
        return x
