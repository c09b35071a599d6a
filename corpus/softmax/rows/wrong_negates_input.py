"""Softmax by exp(min - x): the input is negated in its own memory for that, and negated back before the call returns.
Both are exact, so nothing of it is left; whoever else reads the input meanwhile gets the wrong numbers."""
import torch
import triton
import triton.language as tl


@triton.jit
def _negate(x_ptr, N, sxm, sxn, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    for start in range(0, N, BLOCK):
        cols = start + tl.arange(0, BLOCK).to(tl.int64)
        at = x_ptr + row * sxm + cols * sxn
        tl.store(at, -tl.load(at, mask=cols < N, other=0.0), mask=cols < N)


@triton.jit
def _softmax_of_negated(x_ptr, y_ptr, N, sxm, sxn, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK).to(tl.int64)
    x = tl.load(x_ptr + row * sxm + cols * sxn, mask=cols < N, other=float("inf")).to(tl.float32)
    e = tl.exp(tl.min(x, axis=0) - x)
    tl.store(y_ptr + row * N + cols, e / tl.sum(e, axis=0), mask=cols < N)


def kernel(x):
    M, N = x.shape
    y = torch.empty((M, N), dtype=x.dtype, device=x.device)
    if y.numel():
        sizes = (N, x.stride(0), x.stride(1))
        _negate[(M,)](x, *sizes, BLOCK=256)
        _softmax_of_negated[(M,)](x, y, *sizes, BLOCK=triton.next_power_of_2(N))
        _negate[(M,)](x, *sizes, BLOCK=256)
    return y
