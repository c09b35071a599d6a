"""No masks where 16 divides the row, but a tile is 32 wide."""
import torch
import triton
import triton.language as tl


@triton.jit
def _triple(x_ptr, y_ptr, n, EVEN: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    if EVEN:
        for start in range(0, n - BLOCK + 1, BLOCK):
            cols = start + tl.arange(0, BLOCK)
            tl.store(y_ptr + row * n + cols, tl.load(x_ptr + row * n + cols) * 3)
    else:
        for start in range(0, n, BLOCK):
            cols = start + tl.arange(0, BLOCK)
            tl.store(y_ptr + row * n + cols, tl.load(x_ptr + row * n + cols, mask=cols < n) * 3, mask=cols < n)


def kernel(x):
    y = torch.empty_like(x)
    _triple[(x.shape[0],)](x, y, x.shape[1], EVEN=x.shape[1] % 16 == 0, BLOCK=32)
    return y
