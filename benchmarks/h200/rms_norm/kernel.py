"""One program a row, the whole row in registers: read once, written once."""

import torch
import triton
import triton.language as tl


@triton.jit
def rms_norm_kernel(x_ptr, w_ptr, y_ptr, N, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    keep = cols < N
    x = tl.load(x_ptr + row * N + cols, mask=keep, other=0.0).to(tl.float32)
    w = tl.load(w_ptr + cols, mask=keep, other=0.0).to(tl.float32)
    scale = tl.rsqrt(tl.sum(x * x, axis=0) / N + eps)
    tl.store(y_ptr + row * N + cols, x * scale * w, mask=keep)


def kernel(x, weight, eps):
    M, N = x.shape
    y = torch.empty_like(x)
    block = triton.next_power_of_2(N)
    rms_norm_kernel[(M,)](x, weight, y, N, eps, BLOCK=block, num_warps=min(32, max(4, block // 1024)))
    return y
