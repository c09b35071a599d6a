"""Shifts by the first element and forgets to correct for the mean of the shifted values with the right count: exact only when the mean is near the first element."""
import torch
import triton
import triton.language as tl


@triton.jit
def _variance(x_ptr, y_ptr, N, sxm, sxn, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    lanes = tl.arange(0, BLOCK).to(tl.int64)
    acc = tl.zeros((BLOCK,), x_ptr.dtype.element_ty)
    for start in range(0, N, BLOCK):
        cols = start + lanes
        acc += tl.load(x_ptr + row * sxm + cols * sxn, mask=cols < N, other=0.0)
    mean = tl.sum(acc, axis=0) / N
    first = tl.load(x_ptr + row * sxm)
    acc = tl.zeros((BLOCK,), x_ptr.dtype.element_ty)
    for start in range(0, N, BLOCK):
        cols = start + lanes
        x = tl.load(x_ptr + row * sxm + cols * sxn, mask=cols < N, other=0.0)
        off = tl.where(cols < N, x - first, 0.0)
        acc += off * off
    tl.store(y_ptr + row, (tl.sum(acc, axis=0) - N * (mean - first) * (mean - first)) / N)


def kernel(x):
    M, N = x.shape
    y = torch.empty((M,), dtype=x.dtype, device=x.device)
    if M:
        _variance[(M,)](x, y, N, x.stride(0), x.stride(1), BLOCK=128)
    return y
