"""tanh as 2 sigmoid(2h) - 1: near zero the difference of two numbers near one, so small branches lose most digits."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def residual_kernel(x_ptr, h_ptr, g_ptr, y_ptr, n, width, BLOCK: tl.constexpr):
    offs = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    x = tl.load(x_ptr + offs, mask=mask, other=0.0)
    h = tl.load(h_ptr + offs, mask=mask, other=0.0)
    g = tl.load(g_ptr + offs % width, mask=mask, other=0.0)
    t = 2.0 / (1.0 + tl.exp(-2.0 * h)) - 1.0
    tl.store(y_ptr + offs, x + g * t, mask=mask)


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.linear = nn.Linear(features, features)
        self.gamma = nn.Parameter(1e-4 * torch.ones(features))

    def forward(self, x):
        x = x.contiguous()
        h = self.linear(x)
        y = torch.empty_like(x)
        n, width = x.numel(), x.shape[-1]
        residual_kernel[(triton.cdiv(n, 256),)](x, h, self.gamma, y, n, width, BLOCK=256)
        return y
