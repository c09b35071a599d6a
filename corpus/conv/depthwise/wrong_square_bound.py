"""Depthwise convolution that bounds rows by the width: reads past the plane's last row unless rows are as many as columns."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def depthwise_kernel(x_ptr, w_ptr, b_ptr, y_ptr, channels, h, w, oh, ow, pad, K: tl.constexpr, BLOCK: tl.constexpr):
    plane = tl.program_id(0).to(tl.int64)
    row = tl.program_id(1) + tl.zeros((BLOCK,), tl.int32)
    cols = tl.program_id(2) * BLOCK + tl.arange(0, BLOCK)
    ch = plane % channels
    acc = tl.zeros((BLOCK,), tl.float32) + tl.load(b_ptr + ch)
    for ky in range(K):
        for kx in range(K):
            iy = row + ky - pad
            ix = cols + kx - pad
            inside = (iy >= 0) & (iy < w) & (ix >= 0) & (ix < w)
            x = tl.load(x_ptr + plane * h * w + iy * w + ix, mask=inside, other=0.0)
            acc += x * tl.load(w_ptr + ch * K * K + ky * K + kx)
    tl.store(y_ptr + plane * oh * ow + row * ow + cols, acc, mask=cols < ow)


class ModelNew(nn.Module):
    def __init__(self, channels, kernel_size):
        super().__init__()
        self.conv = nn.Conv2d(channels, channels, kernel_size, padding=kernel_size // 2, groups=channels, bias=True)
        self.k = kernel_size

    def forward(self, x):
        x = x.contiguous()
        n, c, h, w = x.shape
        pad = self.k // 2
        oh, ow = h + 2 * pad - self.k + 1, w + 2 * pad - self.k + 1
        y = torch.empty((n, c, oh, ow), dtype=x.dtype, device=x.device)
        grid = (n * c, oh, triton.cdiv(ow, 32))
        weight, bias = self.conv.weight, self.conv.bias
        depthwise_kernel[grid](x, weight, bias, y, c, h, w, oh, ow, pad, K=self.k, BLOCK=32)
        return y
