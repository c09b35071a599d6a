"""Linear layer by torch, and bias, GELU and scale in one Triton kernel."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def epilogue_kernel(h_ptr, b_ptr, y_ptr, n, width, scale, BLOCK: tl.constexpr):
    offs = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    h = tl.load(h_ptr + offs, mask=mask, other=0.0) + tl.load(b_ptr + offs % width, mask=mask, other=0.0)
    y = 0.5 * h * (1.0 + tl.erf(h * 0.7071067811865476)) * scale
    tl.store(y_ptr + offs, y, mask=mask)


class ModelNew(nn.Module):
    def __init__(self, in_features, out_features, scale):
        super().__init__()
        self.linear = nn.Linear(in_features, out_features)
        self.scale = scale

    def forward(self, x):
        h = torch.matmul(x, self.linear.weight.t()).contiguous()
        y = torch.empty_like(h)
        n, width = h.numel(), h.shape[-1]
        epilogue_kernel[(triton.cdiv(n, 512),)](h, self.linear.bias, y, n, width, self.scale, BLOCK=512)
        return y
