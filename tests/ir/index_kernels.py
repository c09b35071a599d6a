"""Kernels for test_ir_index.py: loops whose turns are leapt over, and values that steer."""

import triton
import triton.language as tl


@triton.jit
def walk(x_ptr, y_ptr, turns, step):
    """One element a turn, through a pointer that the loop carries; its last turn reads its last element."""
    at = x_ptr
    total = 0.0
    for _ in range(turns):
        total += tl.load(at)
        at += step
    tl.store(y_ptr, total)


@triton.jit
def wrap(x_ptr, y_ptr, turns, step):
    """An offset in 32 bits, which wraps in the last turns alone."""
    total = 0.0
    for i in range(turns):
        total += tl.load(x_ptr + i * step)
    tl.store(y_ptr, total)


@triton.jit
def doubling(x_ptr, y_ptr, turns):
    """A step that is not the same each turn: the loop has to be run whole."""
    at = 1
    total = 0.0
    for _ in range(turns):
        total += tl.load(x_ptr + at)
        at = at * 3 % 101
    tl.store(y_ptr, total)


@triton.jit
def ragged(x_ptr, y_ptr, n):
    """Programs with loops of different length."""
    pid = tl.program_id(0)
    total = 0.0
    for i in range(pid, n * (pid + 1), 1):
        total += tl.load(x_ptr + i)
    tl.store(y_ptr + pid, total)


@triton.jit
def gather(i_ptr, v_ptr, w_ptr, y_ptr, n, BLOCK: tl.constexpr):
    """An index steers; a value that is only added does not."""
    lanes = tl.arange(0, BLOCK)
    at = tl.load(i_ptr + lanes)
    v = tl.load(v_ptr + lanes)
    tl.store(y_ptr + lanes, tl.load(w_ptr + at) + v)


@triton.jit
def until(n_ptr, x_ptr, y_ptr):
    """A loaded bound steers a loop; what the loop sums does not."""
    total = 0.0
    for i in range(tl.load(n_ptr)):
        total += tl.load(x_ptr + i)
    tl.store(y_ptr, total)
