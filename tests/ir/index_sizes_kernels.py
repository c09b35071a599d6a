"""Kernels for test_index_domain.py: right and wrong at sizes that only a proof reaches."""

import triton
import triton.language as tl


@triton.jit
def rows(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    tl.store(y_ptr + row * n + cols, tl.load(x_ptr + row * n + cols, mask=cols < n), mask=cols < n)


@triton.jit
def rows_one_too_far(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    tl.store(y_ptr + row * n + cols, tl.load(x_ptr + row * n + cols, mask=cols <= n), mask=cols < n)


@triton.jit
def rows_in_64_bits(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    for first in range(0, n, BLOCK):
        cols = first + tl.arange(0, BLOCK)
        tl.store(y_ptr + row * n + cols, tl.load(x_ptr + row * n + cols, mask=cols < n), mask=cols < n)


@triton.jit
def walking(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    """A pointer and a count that the loop carries."""
    at = x_ptr + tl.program_id(0) * n + tl.arange(0, BLOCK)
    left = n
    total = tl.zeros((BLOCK,), tl.float32)
    for _ in range(0, n, BLOCK):
        total += tl.load(at, mask=tl.arange(0, BLOCK) < left, other=0.0)
        at += BLOCK
        left -= BLOCK
    tl.store(y_ptr + tl.program_id(0), tl.sum(total))


@triton.jit
def walking_too_far(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    at = x_ptr + tl.program_id(0) * n + tl.arange(0, BLOCK)
    left = n
    total = tl.zeros((BLOCK,), tl.float32)
    for _ in range(0, n, BLOCK):
        total += tl.load(at, mask=tl.arange(0, BLOCK) < left, other=0.0)
        at += BLOCK + 1
        left -= BLOCK
    tl.store(y_ptr + tl.program_id(0), tl.sum(total))


@triton.jit
def jumping(x_ptr, y_ptr, n):
    """A step that isn't the same each turn: no induction, so nothing is known of it."""
    at = 1
    total = 0.0
    for _ in range(0, n):
        total += tl.load(x_ptr + at)
        at = at * 3
    tl.store(y_ptr + tl.program_id(0), total)


@triton.jit
def transposed(x_ptr, y_ptr, M, N, T: tl.constexpr):
    i = tl.program_id(0) * T + tl.arange(0, T)
    j = tl.program_id(1) * T + tl.arange(0, T)
    tile = tl.load(x_ptr + i[:, None] * N + j[None, :], mask=(i[:, None] < M) & (j[None, :] < N))
    tl.store(y_ptr + j[:, None] * M + i[None, :], tl.trans(tile), mask=(j[:, None] < N) & (i[None, :] < M))


@triton.jit
def gathered(w_ptr, i_ptr, y_ptr, D, BLOCK: tl.constexpr):
    t = tl.program_id(0).to(tl.int64)
    at = tl.load(i_ptr + t)
    cols = tl.arange(0, BLOCK)
    tl.store(y_ptr + t * D + cols, tl.load(w_ptr + at * D + cols, mask=cols < D), mask=cols < D)


@triton.jit
def overlapping(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    """Each program writes one element of the next one's tile."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x_ptr + i, mask=i < n)
    tl.store(y_ptr + i, v, mask=i < n)
    tl.store(y_ptr + i + 1, v, mask=(i + 1 < n) & (i % BLOCK == BLOCK - 1))


@triton.jit
def counted(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    """Atomics only."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(y_ptr + i % 4, tl.load(x_ptr + i, mask=i < n), mask=i < n)


@triton.jit
def stopping(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    """An early return, and a branch on the program."""
    pid = tl.program_id(0)
    if pid * BLOCK >= n:
        return
    i = pid * BLOCK + tl.arange(0, BLOCK)
    if pid * BLOCK + BLOCK <= n:
        tl.store(y_ptr + i, tl.load(x_ptr + i))
    else:
        tl.store(y_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)


@triton.jit
def swizzled(x_ptr, y_ptr, M, N, T: tl.constexpr, GROUP: tl.constexpr):
    """Tiles in groups of rows; the last group may be smaller."""
    pid = tl.program_id(0)
    across = tl.cdiv(N, T)
    first = pid // (GROUP * across) * GROUP
    size = tl.minimum(tl.cdiv(M, T) - first, GROUP)
    i = (first + pid % (GROUP * across) % size) * T + tl.arange(0, T)
    j = pid % (GROUP * across) // size * T + tl.arange(0, T)
    keep = (i[:, None] < M) & (j[None, :] < N)
    tl.store(y_ptr + i[:, None] * N + j[None, :], tl.load(x_ptr + i[:, None] * N + j[None, :], mask=keep), mask=keep)


@triton.jit
def flattened(x_ptr, y_ptr, M, N, T: tl.constexpr):
    """Row and tile from one program id."""
    pid = tl.program_id(0)
    across = tl.cdiv(N, T)
    row = pid // across
    cols = pid % across * T + tl.arange(0, T)
    tl.store(y_ptr + row * N + cols, tl.load(x_ptr + row * N + cols, mask=cols < N), mask=cols < N)


@triton.jit
def sums(y_ptr, n, M, N, T: tl.constexpr):
    """Operations on integers, each with a store of its own so far from the others' that they don't meet."""
    pid = tl.program_id(0)
    lane = tl.arange(0, T)
    i = pid * T + lane
    back = n - 1 - i
    y = y_ptr + 0
    tl.store(y + i // 3, 1.0, mask=i < n)
    y += 4 * n
    tl.store(y + i % 5 * 3, 1.0, mask=i < n)
    y += 4 * n
    tl.store(y + (i << 1), 1.0, mask=i < n)
    y += 4 * n
    tl.store(y + ((i + 1) >> 1), 1.0, mask=i < n)
    y += 4 * n
    tl.store(y + (i & 3), 1.0, mask=i < n)
    y += 4 * n
    tl.store(y + tl.maximum(back - 3, 0), 1.0, mask=i < n)
    y += 4 * n
    tl.store(y + tl.minimum(i * 2, N), 1.0, mask=(i < n) & ((i > 2) | (i == 0)))
    y += 4 * n
    tl.store(y + tl.where(i % 2 == 0, i, back), 1.0, mask=(i < n) & (back != 3))
    y += 4 * n
    tl.store(y + n + (back - 4) // 3, 1.0, mask=i < n)
    y += 4 * n
    tl.store(y + n + (back - 4) % 3, 1.0, mask=i < n)
    y += 4 * n
    tl.store(y + tl.cdiv(i, 4) + tl.num_programs(0), 1.0, mask=i < n)
    y += 4 * n
    tl.store(y + tl.reshape(i, (2, T // 2)), 1.0, mask=tl.reshape(i, (2, T // 2)) < n - 1)
    y += 4 * n
    low = (i * 300).to(tl.int8).to(tl.int32)
    tl.store(y + n + low % n, 1.0, mask=i < n)


@triton.jit
def turns(y_ptr, n, M, N, T: tl.constexpr):
    """Loops: carried sums, one inside another, a stride of the grid, bounds of the program's own."""
    pid = tl.program_id(0)
    lane = tl.arange(0, T)
    at = y_ptr + pid
    for i in range(pid, n, tl.num_programs(0)):
        for j in range(0, i, 2):
            tl.store(at + i * n + j + lane, 1.0, mask=lane < 2)
        at += n * n * 2
    tl.store(at, 1.0)
    far = 0
    for _ in range(n - 3):
        far += 5
    tl.store(y_ptr + 20 * n * n + far, 1.0)


@triton.jit
def grouped(c_ptr, m, n, TILE: tl.constexpr, GROUP: tl.constexpr):
    pid = tl.program_id(0)
    tiles_m = tl.cdiv(m, TILE)
    per_group = GROUP * tl.cdiv(n, TILE)
    first = (pid // per_group) * GROUP
    height = min(tiles_m - first, GROUP)
    rows = ((first + (pid % per_group) % height).to(tl.int64) * TILE + tl.arange(0, TILE))[:, None]
    cols = (((pid % per_group) // height).to(tl.int64) * TILE + tl.arange(0, TILE))[None, :]
    tl.store(c_ptr + rows * n + cols, tl.zeros((TILE, TILE), tl.float32), mask=(rows < m) & (cols < n))


@triton.jit
def grouped_wrongly(c_ptr, m, n, TILE: tl.constexpr, GROUP: tl.constexpr):
    """The last group's own height is forgotten where columns are counted."""
    pid = tl.program_id(0)
    tiles_m = tl.cdiv(m, TILE)
    per_group = GROUP * tl.cdiv(n, TILE)
    first = (pid // per_group) * GROUP
    height = min(tiles_m - first, GROUP)
    rows = ((first + (pid % per_group) % height).to(tl.int64) * TILE + tl.arange(0, TILE))[:, None]
    cols = (((pid % per_group) // GROUP).to(tl.int64) * TILE + tl.arange(0, TILE))[None, :]
    tl.store(c_ptr + rows * n + cols, tl.zeros((TILE, TILE), tl.float32), mask=(rows < m) & (cols < n))


@triton.jit
def sharing(c_ptr, n, programs, TILE: tl.constexpr):
    """Each program takes every so-many-th tile; as many programs as the launcher likes."""
    for tile in range(tl.program_id(0), tl.cdiv(n, TILE), programs):
        at = tile * TILE + tl.arange(0, TILE)
        tl.store(c_ptr + at, tl.zeros((TILE,), tl.float32), mask=at < n)
