"""Counts by integer atomics: the order is free and the sum is exact, so the bits never change."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def count_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    label = tl.load(x_ptr + offs, mask=mask, other=0)
    one = tl.full((BLOCK,), 1, tl.int64)
    tl.atomic_add(out_ptr + label, one, mask=mask)


class ModelNew(nn.Module):
    def __init__(self, bins):
        super().__init__()
        self.bins = bins

    def forward(self, labels):
        labels = labels.contiguous()
        n = labels.numel()
        out = torch.zeros((self.bins,), dtype=torch.int64, device=labels.device)
        count_kernel[(triton.cdiv(n, 512),)](labels, out, n, BLOCK=512)
        return out
