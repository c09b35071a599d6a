"""Peaks first, then the reversal in a launch of its own: no row is read while another program writes it."""
import torch
import triton
import triton.language as tl


@triton.jit
def _peaks(x_ptr, y_ptr, M, N, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    after = tl.minimum(row + 1, M - 1)
    c = tl.arange(0, BLOCK)
    a = tl.load(x_ptr + row * N + c, mask=c < N, other=-2147483648)
    b = tl.load(x_ptr + after * N + c, mask=c < N, other=-2147483648)
    tl.store(y_ptr + row, tl.max(tl.maximum(a, b), axis=0))


@triton.jit
def _reverse(x_ptr, N, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    c = tl.arange(0, BLOCK)
    a = tl.load(x_ptr + row * N + c, mask=c < N)
    tl.debug_barrier()
    tl.store(x_ptr + row * N + N - 1 - c, a, mask=c < N)


def kernel(x):
    M, N = x.shape
    y = torch.empty(M, dtype=torch.int32, device=x.device)
    BLOCK = triton.next_power_of_2(N)
    _peaks[(M,)](x, y, M, N, BLOCK=BLOCK)
    _reverse[(M,)](x, N, BLOCK=BLOCK)
    return y
