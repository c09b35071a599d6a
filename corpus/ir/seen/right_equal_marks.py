"""Every program that sees a large value stores the same 1: several write one element, and none of it can show."""
import torch
import triton
import triton.language as tl


@triton.jit
def _mark(x_ptr, y_ptr, N, stride_m, stride_n, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    c = tl.program_id(1).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x_ptr + row * stride_m + c * stride_n, mask=c < N, other=0)
    if tl.max(v, axis=0) > 900:
        tl.store(y_ptr + row, 1)


def kernel(x):
    M, N = x.shape
    y = torch.zeros(M, dtype=torch.int32, device=x.device)
    _mark[(M, triton.cdiv(N, 128))](x, y, N, *x.stride(), BLOCK=128)
    return y
