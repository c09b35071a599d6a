"""Persistent programs, each of which takes every n-th tile, n being how many programs there are."""
import triton
import triton.language as tl

PROGRAMS = 132


@triton.jit
def _scale(x_ptr, N, alpha, BLOCK: tl.constexpr):
    tiles = tl.cdiv(N, BLOCK)
    for tile in range(tl.program_id(0), tiles, tl.num_programs(0)):
        i = tile * BLOCK + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + i, mask=i < N)
        tl.store(x_ptr + i, x * alpha, mask=i < N)


def kernel(x, alpha):
    N = x.shape[0]
    _scale[(min(PROGRAMS, triton.cdiv(N, 1024)),)](x, N, alpha, BLOCK=1024)
    return x
