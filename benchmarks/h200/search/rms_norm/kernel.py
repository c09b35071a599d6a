"""As it is written down first: one program a row, which is read twice, block by block."""

import torch
import triton
import triton.language as tl


@triton.jit
def rms_norm_kernel(x_ptr, w_ptr, y_ptr, N, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    lanes = tl.arange(0, BLOCK)
    squares = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, N, BLOCK):
        cols = start + lanes
        x = tl.load(x_ptr + row * N + cols, mask=cols < N, other=0.0).to(tl.float32)
        squares += x * x
    scale = tl.rsqrt(tl.sum(squares, axis=0) / N + eps)
    for start in range(0, N, BLOCK):
        cols = start + lanes
        x = tl.load(x_ptr + row * N + cols, mask=cols < N, other=0.0).to(tl.float32)
        w = tl.load(w_ptr + cols, mask=cols < N, other=0.0).to(tl.float32)
        tl.store(y_ptr + row * N + cols, x * scale * w, mask=cols < N)


def kernel(x, weight, eps):
    M, N = x.shape
    y = torch.empty_like(x)
    rms_norm_kernel[(M,)](
        x,
        weight,
        y,
        N,
        eps,
        BLOCK=1024,  # knob: 512..8192*2
        num_warps=4,  # knob: 1..32*2
        num_stages=3,  # knob: 1..4
    )
    return y
