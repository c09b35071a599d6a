"""Kahan summation without care for infinities: inf - inf in the correction makes the sum NaN where it is inf."""
import torch
import triton
import triton.language as tl


@triton.jit
def _row_sum(x_ptr, y_ptr, N, sxm, sxn, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    lanes = tl.arange(0, BLOCK).to(tl.int64)
    acc = tl.zeros((BLOCK,), tl.float32)
    lost = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, N, BLOCK):
        cols = start + lanes
        x = tl.load(x_ptr + row * sxm + cols * sxn, mask=cols < N, other=0.0).to(tl.float32)
        corrected = x - lost
        grown = acc + corrected
        lost = (grown - acc) - corrected
        acc = grown
    tl.store(y_ptr + row, tl.sum(acc, axis=0))


def kernel(x):
    M, N = x.shape
    y = torch.empty((M,), dtype=x.dtype, device=x.device)
    if M:
        _row_sum[(M,)](x, y, N, x.stride(0), x.stride(1), BLOCK=64)
    return y
