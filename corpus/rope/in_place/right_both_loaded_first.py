"""Rotates q and k where they lie, as the contract asks: both halves are in registers before either is stored."""

import triton
import triton.language as tl


@triton.jit
def rotate_kernel(x_ptr, cos_ptr, sin_ptr, heads, half, BLOCK: tl.constexpr):
    pid = tl.program_id(0).to(tl.int64)
    token = pid // heads
    d = tl.arange(0, BLOCK)
    mask = d < half
    c = tl.load(cos_ptr + token * half + d, mask=mask, other=0.0)
    s = tl.load(sin_ptr + token * half + d, mask=mask, other=0.0)
    lo = x_ptr + pid * 2 * half + d
    hi = lo + half
    a = tl.load(lo, mask=mask, other=0.0)
    b = tl.load(hi, mask=mask, other=0.0)
    tl.store(lo, a * c - b * s, mask=mask)
    tl.store(hi, b * c + a * s, mask=mask)


def kernel(q, k, cos, sin):
    tokens, _, dim = q.shape
    block = triton.next_power_of_2(dim // 2)
    heads = q.shape[1]
    rotate_kernel[(tokens * heads,)](q, cos, sin, heads, dim // 2, BLOCK=block)
    heads = k.shape[1]
    rotate_kernel[(tokens * heads,)](k, cos, sin, heads, dim // 2, BLOCK=block)
    return q, k
