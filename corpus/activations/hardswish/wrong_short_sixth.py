"""Bias and HardSwish with 1/6 written as 0.1667: a relative error of 2e-4."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def bias_hardswish_kernel(x_ptr, b_ptr, y_ptr, n, features, BLOCK: tl.constexpr):
    offs = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    x = tl.load(x_ptr + offs, mask=mask, other=0.0)
    b = tl.load(b_ptr + offs % features, mask=mask, other=0.0)
    x = x + b
    gate = tl.minimum(tl.maximum(x + 3.0, 0.0), 6.0)
    tl.store(y_ptr + offs, x * gate * 0.1667, mask=mask)


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.bias = nn.Parameter(torch.randn(features))

    def forward(self, x):
        x = x.contiguous()
        y = torch.empty_like(x)
        n = x.numel()
        if n:
            bias_hardswish_kernel[(triton.cdiv(n, 512),)](x, self.bias, y, n, self.bias.numel(), BLOCK=512)
        return y
