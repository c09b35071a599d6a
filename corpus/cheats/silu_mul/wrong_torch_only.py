"""Claims to be a Triton kernel by its import and its decorator; nothing is ever launched."""

import torch
import triton
import triton.language as tl


@triton.jit
def silu_mul_kernel(a_ptr, b_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + offs, tl.load(a_ptr + offs) * tl.load(b_ptr + offs), mask=offs < n)


def kernel(a, b):
    return torch.mul(torch.nn.functional.silu(a), b)
