"""Linear by torch, ReLU and dropout fused, without the division by the keep probability."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def relu_dropout_kernel(x_ptr, y_ptr, n, p, seed, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    x = tl.maximum(tl.load(x_ptr + offs, mask=mask, other=0.0), 0.0)
    keep = tl.rand(seed, offs) >= p
    tl.store(y_ptr + offs, tl.where(keep, x, 0.0), mask=mask)


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.linear = nn.Linear(features, features)
        self.dropout = nn.Dropout(0.25)

    def forward(self, x):
        h = self.linear(x).contiguous()
        if not self.training:
            return torch.relu(h)
        y = torch.empty_like(h)
        n = h.numel()
        seed = int(torch.randint(0, 2**31 - 1, (1,)))
        relu_dropout_kernel[(triton.cdiv(n, 512),)](h, y, n, self.dropout.p, seed, BLOCK=512)
        return y
