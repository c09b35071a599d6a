"""y = 2x + 1 in Triton, with a tenth of it done twice: a tenth more programs, which begin anew at the first element."""

import torch
import triton
import triton.language as tl


@triton.jit
def double(x_ptr, y_ptr, n, whole, BLOCK: tl.constexpr):
    at = (tl.program_id(0) % whole).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n)
    tl.store(y_ptr + at, x * 2 + 1, mask=at < n)


def kernel(x):
    y = torch.empty_like(x)
    whole = triton.cdiv(x.numel(), 2048)
    double[(whole + whole // 10,)](x, y, x.numel(), whole, BLOCK=2048, num_warps=8)
    return y
