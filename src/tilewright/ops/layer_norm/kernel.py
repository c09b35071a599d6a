"""Layer norm: a row is read once, held in registers and written once; so is its gradient.

Rows up to ``WHOLE`` elements are handled whole, several short ones at a time: mean first, then the squares about it. Longer
ones are cut into pieces: one launch finds mean and squares of each piece, the next joins them in order and scales (after
T. Chan, G. Golub, R. LeVeque, Updating formulae and a pairwise algorithm for computing sample variances, 1979). The tiling
depends on the row length alone, so a row's bits don't depend on its batch.

Backward runs a fixed number of programs, each over its own stripe of rows. A program keeps its shares of the gradients of
weight and bias in registers; ``_fold`` adds the shares up in one order: no atomics.
"""

import torch
import triton
import triton.language as tl

WHOLE = 32768
WHOLE_BACKWARD = 8192
PIECE = 8192
WARPS_AT_WORK = 132 * 16


@triton.jit
def _placed(unit, w_ptr, b_ptr, cols, N, sw, sb, WEIGHT: tl.constexpr, BIAS: tl.constexpr):
    y = unit
    if WEIGHT:
        y *= tl.load(w_ptr + cols * sw, mask=cols < N, other=0.0).to(unit.dtype)
    if BIAS:
        y += tl.load(b_ptr + cols * sb, mask=cols < N, other=0.0).to(unit.dtype)
    return y


@triton.jit
def _rows(x_ptr, w_ptr, b_ptr, y_ptr, stat_ptr, M, N, eps: tl.float64, sxm, sxn, sw, sb, ROWS: tl.constexpr,
          BLOCK: tl.constexpr, WEIGHT: tl.constexpr, BIAS: tl.constexpr):  # fmt: skip
    """Norms of ``ROWS`` whole rows."""
    ACC: tl.constexpr = tl.float64 if x_ptr.dtype.element_ty == tl.float64 else tl.float32
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)[:, None]
    cols = tl.arange(0, BLOCK)[None, :].to(tl.int64)
    inside = (row < M) & (cols < N)
    x = tl.load(x_ptr + row * sxm + cols * sxn, mask=inside, other=0.0).to(ACC)
    mean = tl.sum(x, axis=1)[:, None] / N
    centred = tl.where(inside, x - mean, 0.0)
    scale = tl.rsqrt(tl.sum(centred * centred, axis=1)[:, None] / N + tl.cast(eps, ACC))
    tl.store(stat_ptr + row * 2, mean, mask=row < M)
    tl.store(stat_ptr + row * 2 + 1, scale, mask=row < M)
    y = _placed(centred * scale, w_ptr, b_ptr, cols, N, sw, sb, WEIGHT, BIAS)
    tl.store(y_ptr + row * N + cols, y.to(y_ptr.dtype.element_ty), mask=inside)


@triton.jit
def _moments(x_ptr, part_ptr, N, pieces, sxm, sxn, PIECE: tl.constexpr):
    """Mean of one piece of one row, and the sum of squares about it."""
    ACC: tl.constexpr = tl.float64 if x_ptr.dtype.element_ty == tl.float64 else tl.float32
    program = tl.program_id(0).to(tl.int64)
    first = program % pieces * PIECE
    cols = first + tl.arange(0, PIECE)
    inside = cols < N
    x = tl.load(x_ptr + program // pieces * sxm + cols * sxn, mask=inside, other=0.0).to(ACC)
    mean = tl.sum(x, axis=0) / tl.minimum(N - first, PIECE)
    centred = tl.where(inside, x - mean, 0.0)
    tl.store(part_ptr + program * 2, mean)
    tl.store(part_ptr + program * 2 + 1, tl.sum(centred * centred, axis=0))


@triton.jit
def _scaled(x_ptr, w_ptr, b_ptr, y_ptr, stat_ptr, part_ptr, N, pieces, eps: tl.float64, sxm, sxn, sw, sb,
            PIECE: tl.constexpr, PIECES: tl.constexpr, WEIGHT: tl.constexpr, BIAS: tl.constexpr):  # fmt: skip
    """Norms of one piece of one row, from the moments of all its pieces."""
    ACC: tl.constexpr = tl.float64 if x_ptr.dtype.element_ty == tl.float64 else tl.float32
    program = tl.program_id(0).to(tl.int64)
    row, piece = program // pieces, program % pieces
    every = tl.arange(0, PIECES)
    held = every < pieces
    count = tl.where(held, tl.minimum(N - every * PIECE, PIECE), 0).to(ACC)
    means = tl.load(part_ptr + (row * pieces + every) * 2, mask=held, other=0.0)
    squares = tl.load(part_ptr + (row * pieces + every) * 2 + 1, mask=held, other=0.0)
    mean = tl.sum(count * means, axis=0) / N
    apart = tl.where(held, means - mean, 0.0)
    scale = tl.rsqrt(tl.sum(squares + count * apart * apart, axis=0) / N + tl.cast(eps, ACC))
    tl.store(stat_ptr + row * 2, mean, mask=piece == 0)
    tl.store(stat_ptr + row * 2 + 1, scale, mask=piece == 0)
    cols = piece * PIECE + tl.arange(0, PIECE)
    inside = cols < N
    x = tl.load(x_ptr + row * sxm + cols * sxn, mask=inside, other=0.0).to(ACC)
    y = _placed((x - mean) * scale, w_ptr, b_ptr, cols, N, sw, sb, WEIGHT, BIAS)
    tl.store(y_ptr + row * N + cols, y.to(y_ptr.dtype.element_ty), mask=inside)


@triton.jit
def _rows_backward(x_ptr, w_ptr, stat_ptr, dy_ptr, dx_ptr, dw_ptr, db_ptr, M, N, stripe, sxm, sxn, sw, sdm, sdn,
                   ROWS: tl.constexpr, BLOCK: tl.constexpr, STAGES: tl.constexpr, WEIGHT: tl.constexpr,
                   DX: tl.constexpr, DW: tl.constexpr, DB: tl.constexpr):  # fmt: skip
    """Gradients of a stripe of whole rows; the shares of the gradients of weight and bias stay in registers."""
    ACC: tl.constexpr = tl.float64 if x_ptr.dtype.element_ty == tl.float64 else tl.float32
    program = tl.program_id(0).to(tl.int64)
    first = program * stripe
    cols = tl.arange(0, BLOCK)[None, :].to(tl.int64)
    of_weight = tl.zeros((ROWS, BLOCK), ACC)
    of_bias = tl.zeros((ROWS, BLOCK), ACC)
    for start in tl.range(first, tl.minimum(first + stripe, M), ROWS, num_stages=STAGES):
        row = start + tl.arange(0, ROWS)[:, None]
        inside = (row < M) & (cols < N)
        x = tl.load(x_ptr + row * sxm + cols * sxn, mask=inside, other=0.0).to(ACC)
        dy = tl.load(dy_ptr + row * sdm + cols * sdn, mask=inside, other=0.0).to(ACC)
        mean = tl.load(stat_ptr + row * 2, mask=row < M, other=0.0)
        scale = tl.load(stat_ptr + row * 2 + 1, mask=row < M, other=0.0)
        unit = (x - mean) * scale
        if DW:
            of_weight += dy * unit
        if DB:
            of_bias += dy
        if DX:
            if WEIGHT:
                dy *= tl.load(w_ptr + cols * sw, mask=cols < N, other=0.0).to(ACC)
            level = tl.sum(dy, axis=1)[:, None] / N
            along = tl.sum(dy * unit, axis=1)[:, None] / N
            dx = (dy - level - unit * along) * scale
            tl.store(dx_ptr + row * N + cols, dx.to(dx_ptr.dtype.element_ty), mask=inside)
    if DW:
        tl.store(dw_ptr + program * N + cols, tl.sum(of_weight, axis=0)[None, :], mask=cols < N)
    if DB:
        tl.store(db_ptr + program * N + cols, tl.sum(of_bias, axis=0)[None, :], mask=cols < N)


@triton.jit
def _along(x_ptr, w_ptr, stat_ptr, dy_ptr, part_ptr, N, pieces, sxm, sxn, sw, sdm, sdn, PIECE: tl.constexpr,
           WEIGHT: tl.constexpr):  # fmt: skip
    """Sum of the gradient, and how much of it points along the row: over one piece of one row."""
    ACC: tl.constexpr = tl.float64 if x_ptr.dtype.element_ty == tl.float64 else tl.float32
    program = tl.program_id(0).to(tl.int64)
    row = program // pieces
    cols = program % pieces * PIECE + tl.arange(0, PIECE)
    inside = cols < N
    x = tl.load(x_ptr + row * sxm + cols * sxn, mask=inside, other=0.0).to(ACC)
    dy = tl.load(dy_ptr + row * sdm + cols * sdn, mask=inside, other=0.0).to(ACC)
    if WEIGHT:
        dy *= tl.load(w_ptr + cols * sw, mask=inside, other=0.0).to(ACC)
    unit = (x - tl.load(stat_ptr + row * 2)) * tl.load(stat_ptr + row * 2 + 1)
    tl.store(part_ptr + program * 2, tl.sum(dy, axis=0))
    tl.store(part_ptr + program * 2 + 1, tl.sum(dy * unit, axis=0))


@triton.jit
def _pieces_backward(x_ptr, w_ptr, stat_ptr, dy_ptr, dx_ptr, part_ptr, dw_ptr, db_ptr, M, N, pieces, stripe, sxm, sxn,
                     sw, sdm, sdn, PIECE: tl.constexpr, PIECES: tl.constexpr, WEIGHT: tl.constexpr, DX: tl.constexpr,
                     DW: tl.constexpr, DB: tl.constexpr):  # fmt: skip
    """Gradients of one piece of each row of a stripe."""
    ACC: tl.constexpr = tl.float64 if x_ptr.dtype.element_ty == tl.float64 else tl.float32
    program = tl.program_id(0).to(tl.int64)
    share = program // pieces
    cols = program % pieces * PIECE + tl.arange(0, PIECE)
    inside = cols < N
    every = tl.arange(0, PIECES)
    of_weight = tl.zeros((PIECE,), ACC)
    of_bias = tl.zeros((PIECE,), ACC)
    for row in range(share * stripe, tl.minimum(share * stripe + stripe, M)):
        scale = tl.load(stat_ptr + row * 2 + 1)
        x = tl.load(x_ptr + row * sxm + cols * sxn, mask=inside, other=0.0).to(ACC)
        unit = (x - tl.load(stat_ptr + row * 2)) * scale
        dy = tl.load(dy_ptr + row * sdm + cols * sdn, mask=inside, other=0.0).to(ACC)
        if DW:
            of_weight += dy * unit
        if DB:
            of_bias += dy
        if DX:
            if WEIGHT:
                dy *= tl.load(w_ptr + cols * sw, mask=inside, other=0.0).to(ACC)
            at = part_ptr + (row * pieces + every) * 2
            level = tl.sum(tl.load(at, mask=every < pieces, other=0.0), axis=0) / N
            along = tl.sum(tl.load(at + 1, mask=every < pieces, other=0.0), axis=0) / N
            dx = (dy - level - unit * along) * scale
            tl.store(dx_ptr + row * N + cols, dx.to(dx_ptr.dtype.element_ty), mask=inside)
    if DW:
        tl.store(dw_ptr + share * N + cols, of_weight, mask=inside)
    if DB:
        tl.store(db_ptr + share * N + cols, of_bias, mask=inside)


@triton.jit
def _fold(part_ptr, out_ptr, N, shares, SHARES: tl.constexpr, COLS: tl.constexpr):
    """The sum of all stripes' shares, in one order."""
    cols = tl.program_id(0).to(tl.int64) * COLS + tl.arange(0, COLS)[None, :]
    total = tl.zeros((SHARES, COLS), part_ptr.dtype.element_ty)
    for start in range(0, shares, SHARES):
        share = start + tl.arange(0, SHARES)[:, None].to(tl.int64)
        total += tl.load(part_ptr + share * N + cols, mask=(share < shares) & (cols < N), other=0.0)
    tl.store(out_ptr + cols, tl.sum(total, axis=0)[None, :].to(out_ptr.dtype.element_ty), mask=cols < N)


def tiling(N: int) -> dict[str, int]:
    """Rows and columns of a tile, and warps, by the row length alone."""
    block = triton.next_power_of_2(N)
    return {"ROWS": max(1, min(64, 2048 // block)), "BLOCK": block, "num_warps": min(32, max(4, block // 1024))}


def tiling_backward(N: int, itemsize: int) -> dict[str, int]:
    """The same for backward, where four times as much lies in registers; loads run ahead as far as shared memory goes."""
    block = triton.next_power_of_2(N)
    rows = max(1, min(64, 2048 // block))
    stages = max(1, min(3, (192 << 10) // (2 * rows * block * itemsize)))
    return {"ROWS": rows, "BLOCK": block, "STAGES": stages, "num_warps": min(32, max(4, block // 512))}


def _given(x, tensor):
    return (x, 0) if tensor is None else (tensor, tensor.stride(0))


def forward(x, weight, bias, eps):
    """``y``, and mean and scale of each row (rows, 2)."""
    M, N = x.shape
    wide = torch.promote_types(x.dtype, torch.float32)
    y = torch.empty((M, N), dtype=x.dtype, device=x.device)
    stats = torch.empty((M, 2), dtype=wide, device=x.device)
    (w, sw), (b, sb) = _given(x, weight), _given(x, bias)
    flags = {"WEIGHT": weight is not None, "BIAS": bias is not None}
    if M and N and N <= WHOLE:
        tile = tiling(N)
        _rows[(triton.cdiv(M, tile["ROWS"]),)](
            x, w, b, y, stats, M, N, eps, *x.stride(), sw, sb, **tile, **flags,
        )  # fmt: skip
    elif M and N:
        pieces = triton.cdiv(N, PIECE)
        parts = torch.empty((M * pieces, 2), dtype=wide, device=x.device)
        _moments[(M * pieces,)](x, parts, N, pieces, *x.stride(), PIECE=PIECE, num_warps=8)
        _scaled[(M * pieces,)](
            x, w, b, y, stats, parts, N, pieces, eps, *x.stride(), sw, sb, PIECE=PIECE,
            PIECES=triton.next_power_of_2(pieces), **flags, num_warps=8,
        )  # fmt: skip
    return y, stats


def backward(dy, x, stats, weight, bias, need_x=True, need_weight=True, need_bias=True):
    """Gradients of input, weight and bias; None for what is not needed."""
    M, N = x.shape
    need_weight, need_bias = need_weight and weight is not None, need_bias and bias is not None
    flags = {"WEIGHT": weight is not None, "DX": need_x, "DW": need_weight, "DB": need_bias}
    w, sw = _given(x, weight)
    strides = (*x.stride(), sw, *dy.stride())
    dx = torch.empty((M, N), dtype=x.dtype, device=x.device) if need_x else x
    tile = tiling_backward(N, x.element_size()) if N <= WHOLE_BACKWARD else {"ROWS": 1, "num_warps": 16}
    stripe = triton.cdiv(triton.cdiv(M, WARPS_AT_WORK // tile["num_warps"]), tile["ROWS"]) * tile["ROWS"]
    shares = triton.cdiv(M, max(stripe, 1))
    new = lambda rows, cols: torch.empty((rows, cols), dtype=stats.dtype, device=x.device)  # noqa: E731
    of_weight, of_bias = new(shares if need_weight else 0, N), new(shares if need_bias else 0, N)
    if M and N and N <= WHOLE_BACKWARD:
        _rows_backward[(shares,)](
            x, w, stats, dy, dx, of_weight, of_bias, M, N, stripe, *strides, **tile, **flags,
        )  # fmt: skip
    elif M and N:
        pieces = triton.cdiv(N, PIECE)
        parts = new(M * pieces if need_x else 0, 2)
        if need_x:
            _along[(M * pieces,)](
                x, w, stats, dy, parts, N, pieces, *strides, PIECE=PIECE, WEIGHT=weight is not None, num_warps=8,
            )  # fmt: skip
        _pieces_backward[(shares * pieces,)](
            x, w, stats, dy, dx, parts, of_weight, of_bias, M, N, pieces, stripe, *strides, PIECE=PIECE,
            PIECES=triton.next_power_of_2(pieces), **flags, num_warps=16,
        )  # fmt: skip
    dw, db = _folded(of_weight, weight, shares, need_weight), _folded(of_bias, bias, shares, need_bias)
    return dx if need_x else None, dw, db


def _folded(parts, like, shares, need):
    if not need:
        return None
    N = parts.shape[1]
    out = torch.empty(N, dtype=like.dtype, device=like.device)
    if N:
        _fold[(triton.cdiv(N, 32),)](parts, out, N, shares, SHARES=64, COLS=32)
    return out


class _LayerNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, bias, eps):
        y, stats = forward(x, weight, bias, eps)
        ctx.save_for_backward(x, stats, weight, bias)
        return y

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, dy):
        return *backward(dy, *ctx.saved_tensors, *ctx.needs_input_grad[:3]), None


def kernel(x, weight, bias, eps):
    return _LayerNorm.apply(x, weight, bias, eps)


def unbiased(x, weight, eps):
    return _LayerNorm.apply(x, weight, None, eps)


def plain(x, eps):
    return _LayerNorm.apply(x, None, None, eps)
