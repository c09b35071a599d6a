"""Softmax and log-softmax along any axis: a row is read once, held in registers and written once; so is its gradient.

The tensor is seen as ``(A, B, C, R, N)`` by strides alone: ``N`` lies along the axis, a program takes ``ROWS`` neighbours
along ``R``. Rows beyond ``WHOLE`` elements are cut into pieces: one launch finds maximum and sum of each piece, the next
joins them in order and writes. The tiling depends on the row alone, so a row's bits don't depend on its batch.

A masked element takes no part, whatever it holds. A row without any other is all zeros (log: all -inf).
"""

import functools

import torch
import triton
import triton.language as tl

WHOLE = 32768
PIECE = 16384


@triton.jit
def _outer(o, B, C, sa, sb, sc):
    """Offset of the ``o``-th slice along the outer dims."""
    return o // (B * C) * sa + o // C % B * sb + o % C * sc


@triton.jit
def _scaled(x_ptr, offset, live, scale, ACC: tl.constexpr):
    return tl.load(x_ptr + offset, mask=live, other=0.0).to(ACC) * tl.cast(scale, ACC)


@triton.jit
def _live(m_ptr, offset, inside, i, n, causal_rows, N, MASK: tl.constexpr, CAUSAL: tl.constexpr):
    """Which elements take part."""
    live = inside
    if MASK:
        live = live & (tl.load(m_ptr + offset, mask=inside, other=0) != 0)
    if CAUSAL:
        live = live & (n <= i % causal_rows + (N - causal_rows))
    return live


@triton.jit
def _rows(x_ptr, m_ptr, y_ptr, B, C, R, N, blocks, causal_rows, scale: tl.float64, xa, xb, xc, xi, xn, ma, mb, mc, mi, mn,
          ya, yb, yc, yi, yn, ROWS: tl.constexpr, BLOCK: tl.constexpr, MASK: tl.constexpr, CAUSAL: tl.constexpr,
          LOG: tl.constexpr):  # fmt: skip
    """``ROWS`` whole rows."""
    ACC: tl.constexpr = tl.float64 if x_ptr.dtype.element_ty == tl.float64 else tl.float32
    program = tl.program_id(0).to(tl.int64)
    o = program // blocks
    i = program % blocks * ROWS + tl.arange(0, ROWS)[:, None]
    n = tl.arange(0, BLOCK)[None, :].to(tl.int64)
    inside = (i < R) & (n < N)
    live = _live(m_ptr, _outer(o, B, C, ma, mb, mc) + i * mi + n * mn, inside, i, n, causal_rows, N, MASK, CAUSAL)
    s = _scaled(x_ptr, _outer(o, B, C, xa, xb, xc) + i * xi + n * xn, live, scale, ACC)
    s = tl.where(live, s, float("-inf"))
    top = tl.max(s, axis=1)[:, None]
    e = tl.where(live, tl.exp(s - top), 0.0)
    total = tl.sum(e, axis=1)[:, None]
    if LOG:
        y = tl.where(live, s - top - tl.log(total), float("-inf"))
    else:
        y = tl.where(live, e / total, 0.0)
    tl.store(y_ptr + _outer(o, B, C, ya, yb, yc) + i * yi + n * yn, y.to(y_ptr.dtype.element_ty), mask=inside)


@triton.jit
def _parts(x_ptr, m_ptr, part_ptr, B, C, R, N, pieces, causal_rows, scale: tl.float64, xa, xb, xc, xi, xn, ma, mb, mc, mi,
           mn, PIECE: tl.constexpr, MASK: tl.constexpr, CAUSAL: tl.constexpr):  # fmt: skip
    """Maximum of one piece of one row, and the sum of exponentials below it."""
    ACC: tl.constexpr = tl.float64 if x_ptr.dtype.element_ty == tl.float64 else tl.float32
    program = tl.program_id(0).to(tl.int64)
    row = program // pieces
    o, i = row // R, row % R
    n = program % pieces * PIECE + tl.arange(0, PIECE)
    live = _live(m_ptr, _outer(o, B, C, ma, mb, mc) + i * mi + n * mn, n < N, i, n, causal_rows, N, MASK, CAUSAL)
    s = _scaled(x_ptr, _outer(o, B, C, xa, xb, xc) + i * xi + n * xn, live, scale, ACC)
    s = tl.where(live, s, float("-inf"))
    top = tl.max(s, axis=0)
    tl.store(part_ptr + program * 2, top)
    tl.store(part_ptr + program * 2 + 1, tl.sum(tl.where(live, tl.exp(s - top), 0.0), axis=0))


@triton.jit
def _joined(x_ptr, m_ptr, part_ptr, y_ptr, B, C, R, N, pieces, causal_rows, scale: tl.float64, xa, xb, xc, xi, xn, ma, mb,
            mc, mi, mn, ya, yb, yc, yi, yn, PIECE: tl.constexpr, PIECES: tl.constexpr, MASK: tl.constexpr,
            CAUSAL: tl.constexpr, LOG: tl.constexpr):  # fmt: skip
    """One piece of one row, from what all its pieces found."""
    ACC: tl.constexpr = tl.float64 if x_ptr.dtype.element_ty == tl.float64 else tl.float32
    program = tl.program_id(0).to(tl.int64)
    row = program // pieces
    o, i = row // R, row % R
    every = tl.arange(0, PIECES)
    known = every < pieces
    tops = tl.load(part_ptr + (row * pieces + every) * 2, mask=known, other=float("-inf"))
    sums = tl.load(part_ptr + (row * pieces + every) * 2 + 1, mask=known, other=0.0)
    top = tl.max(tops, axis=0)
    # A piece without a live element has sum 0 below maximum -inf: it adds nothing, also where all pieces are like it.
    total = tl.sum(tl.where(sums == 0.0, 0.0, sums * tl.exp(tops - top)), axis=0)
    n = program % pieces * PIECE + tl.arange(0, PIECE)
    inside = n < N
    live = _live(m_ptr, _outer(o, B, C, ma, mb, mc) + i * mi + n * mn, inside, i, n, causal_rows, N, MASK, CAUSAL)
    s = _scaled(x_ptr, _outer(o, B, C, xa, xb, xc) + i * xi + n * xn, live, scale, ACC)
    if LOG:
        y = tl.where(live, s - top - tl.log(total), float("-inf"))
    else:
        y = tl.where(live, tl.exp(s - top) / total, 0.0)
    tl.store(y_ptr + _outer(o, B, C, ya, yb, yc) + i * yi + n * yn, y.to(y_ptr.dtype.element_ty), mask=inside)


@triton.jit
def _slope(y, dy, along, rest, live, scale, ACC: tl.constexpr, LOG: tl.constexpr):
    grad = dy - tl.exp(y) * along if LOG else y * ((dy - along) - rest)
    return tl.where(live, grad * tl.cast(scale, ACC), 0.0)


@triton.jit
def _rows_backward(y_ptr, m_ptr, d_ptr, g_ptr, B, C, R, N, blocks, causal_rows, scale: tl.float64, ya, yb, yc, yi, yn, ma,
                   mb, mc, mi, mn, da, db, dc, di, dn, ga, gb, gc, gi, gn, ROWS: tl.constexpr, BLOCK: tl.constexpr,
                   MASK: tl.constexpr, CAUSAL: tl.constexpr, LOG: tl.constexpr):  # fmt: skip
    """Gradient of ``ROWS`` whole rows."""
    ACC: tl.constexpr = tl.float64 if y_ptr.dtype.element_ty == tl.float64 else tl.float32
    program = tl.program_id(0).to(tl.int64)
    o = program // blocks
    i = program % blocks * ROWS + tl.arange(0, ROWS)[:, None]
    n = tl.arange(0, BLOCK)[None, :].to(tl.int64)
    inside = (i < R) & (n < N)
    live = _live(m_ptr, _outer(o, B, C, ma, mb, mc) + i * mi + n * mn, inside, i, n, causal_rows, N, MASK, CAUSAL)
    y = tl.load(y_ptr + _outer(o, B, C, ya, yb, yc) + i * yi + n * yn, mask=live, other=0.0).to(ACC)
    dy = tl.load(d_ptr + _outer(o, B, C, da, db, dc) + i * di + n * dn, mask=live, other=0.0).to(ACC)
    # Where one y is near 1, dy - along cancels: what along lost to rounding is summed up again, relative to along.
    along = tl.sum(dy if LOG else dy * y, axis=1)[:, None]
    rest = tl.sum((dy - along) * y, axis=1)[:, None]
    grad = _slope(y, dy, along, rest, live, scale, ACC, LOG)
    tl.store(g_ptr + _outer(o, B, C, ga, gb, gc) + i * gi + n * gn, grad.to(g_ptr.dtype.element_ty), mask=inside)


@triton.jit
def _along(y_ptr, m_ptr, d_ptr, part_ptr, B, C, R, N, pieces, causal_rows, ya, yb, yc, yi, yn, ma, mb, mc, mi, mn, da, db,
           dc, di, dn, PIECE: tl.constexpr, MASK: tl.constexpr, CAUSAL: tl.constexpr, LOG: tl.constexpr):  # fmt: skip
    """The sums that a row's gradients share, over one piece of one row."""
    ACC: tl.constexpr = tl.float64 if y_ptr.dtype.element_ty == tl.float64 else tl.float32
    program = tl.program_id(0).to(tl.int64)
    row = program // pieces
    o, i = row // R, row % R
    n = program % pieces * PIECE + tl.arange(0, PIECE)
    live = _live(m_ptr, _outer(o, B, C, ma, mb, mc) + i * mi + n * mn, n < N, i, n, causal_rows, N, MASK, CAUSAL)
    dy = tl.load(d_ptr + _outer(o, B, C, da, db, dc) + i * di + n * dn, mask=live, other=0.0).to(ACC)
    if LOG:
        tl.store(part_ptr + program * 3, tl.sum(dy, axis=0))
    else:
        y = tl.load(y_ptr + _outer(o, B, C, ya, yb, yc) + i * yi + n * yn, mask=live, other=0.0).to(ACC)
        total = tl.sum(y, axis=0)
        mean = tl.where(total == 0.0, 0.0, tl.sum(dy * y, axis=0) / total)
        tl.store(part_ptr + program * 3, mean)
        tl.store(part_ptr + program * 3 + 1, total)
        tl.store(part_ptr + program * 3 + 2, tl.sum((dy - mean) * y, axis=0))


@triton.jit
def _pieces_backward(y_ptr, m_ptr, d_ptr, part_ptr, g_ptr, B, C, R, N, pieces, causal_rows, scale: tl.float64, ya, yb, yc,
                     yi, yn, ma, mb, mc, mi, mn, da, db, dc, di, dn, ga, gb, gc, gi, gn, PIECE: tl.constexpr,
                     PIECES: tl.constexpr, MASK: tl.constexpr, CAUSAL: tl.constexpr, LOG: tl.constexpr):  # fmt: skip
    """Gradient of one piece of one row, from the sums of all its pieces."""
    ACC: tl.constexpr = tl.float64 if y_ptr.dtype.element_ty == tl.float64 else tl.float32
    program = tl.program_id(0).to(tl.int64)
    row = program // pieces
    o, i = row // R, row % R
    every = tl.arange(0, PIECES)
    at, known = part_ptr + (row * pieces + every) * 3, every < pieces
    mean = tl.load(at, mask=known, other=0.0)
    if LOG:
        along, rest = tl.sum(mean, axis=0), 0.0
    else:
        total = tl.load(at + 1, mask=known, other=0.0)
        along = tl.sum(mean * total, axis=0)
        rest = tl.sum((mean - along) * total + tl.load(at + 2, mask=known, other=0.0), axis=0)
    n = program % pieces * PIECE + tl.arange(0, PIECE)
    inside = n < N
    live = _live(m_ptr, _outer(o, B, C, ma, mb, mc) + i * mi + n * mn, inside, i, n, causal_rows, N, MASK, CAUSAL)
    y = tl.load(y_ptr + _outer(o, B, C, ya, yb, yc) + i * yi + n * yn, mask=live, other=0.0).to(ACC)
    dy = tl.load(d_ptr + _outer(o, B, C, da, db, dc) + i * di + n * dn, mask=live, other=0.0).to(ACC)
    grad = _slope(y, dy, along, rest, live, scale, ACC, LOG)
    tl.store(g_ptr + _outer(o, B, C, ga, gb, gc) + i * gi + n * gn, grad.to(g_ptr.dtype.element_ty), mask=inside)


@functools.lru_cache(maxsize=1024)
def tiling(N: int, across: bool = False, most: int = WHOLE) -> dict[str, int]:
    """Rows and columns of a tile, and warps, by row length and direction alone. ``across``: neighbouring rows, not
    neighbouring columns, lie side by side in memory, so a tile takes in more rows."""
    block = triton.next_power_of_2(N)
    rows = max(1, min(64, 2048 // block))
    if across:
        rows = max(rows, min(32, most // block))
    return {"ROWS": rows, "BLOCK": block, "num_warps": min(32, max(4, rows * block // 1024))}


def folded(axis: int, *tensors: torch.Tensor) -> tuple[tuple[int, ...], tuple[tuple[int, ...], ...]]:
    """Sizes ``(A, B, C, R, N)`` of tensors of one shape, and the strides of each; neighbouring dims are merged where the
    strides of all allow it. Five outer dims that don't merge are refused: make the tensors contiguous first."""
    return _folded(axis, tuple(tensors[0].shape), tuple(t.stride() for t in tensors))


@functools.lru_cache(maxsize=1024)
def _folded(axis, shape, every):
    if not shape:
        return (1,) * 5, ((0, 0, 0, 0, 1),) * len(every)
    axis %= len(shape)
    outer = [d for d in range(len(shape)) if d != axis and shape[d] != 1]
    sizes: list[int] = []
    lead: list[list[int]] = [[] for _ in every]
    for d in outer:
        if sizes and all(s[-1] == shape[d] * strides[d] for s, strides in zip(lead, every, strict=True)):
            sizes[-1] *= shape[d]
            for s, strides in zip(lead, every, strict=True):
                s[-1] = strides[d]
            continue
        sizes.append(shape[d])
        for s, strides in zip(lead, every, strict=True):
            s.append(strides[d])
    pad = 4 - len(sizes)
    if pad < 0:
        raise ValueError(f"softmax: {len(sizes)} outer dims can't be merged, at most 4; make the input contiguous")
    of = [(*[0] * pad, *s, strides[axis]) for s, strides in zip(lead, every, strict=True)]
    return (*[1] * pad, *sizes, shape[axis]), tuple(of)


def forward(x, mask, axis, scale, causal, log, tile=None):
    """``softmax(scale * x)`` along ``axis``, or its logarithm, contiguous. ``mask``: bool, of the shape of ``x``."""
    y = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    if not x.numel():
        return y
    (A, B, C, R, N), (sx, sm, sy) = folded(axis, x, x if mask is None else mask, y)
    m = x if mask is None else mask.view(torch.uint8)
    rows = x.shape[-2] if causal else 1
    flags = {"MASK": mask is not None, "CAUSAL": causal}
    if N <= WHOLE:
        tile = tile or tiling(N, R > 1 and sx[3] < sx[4])
        blocks = -(-R // tile["ROWS"])
        _rows[(A * B * C * blocks,)](
            x, m, y, B, C, R, N, blocks, rows, float(scale), *sx, *sm, *sy, **tile, **flags, LOG=log,
        )  # fmt: skip
        return y
    pieces = triton.cdiv(N, PIECE)
    parts = torch.empty(A * B * C * R * pieces * 2, dtype=torch.promote_types(x.dtype, torch.float32), device=x.device)
    grid = (A * B * C * R * pieces,)
    _parts[grid](
        x, m, parts, B, C, R, N, pieces, rows, float(scale), *sx, *sm, PIECE=PIECE, **flags, num_warps=16,
    )  # fmt: skip
    _joined[grid](
        x, m, parts, y, B, C, R, N, pieces, rows, float(scale), *sx, *sm, *sy, PIECE=PIECE,
        PIECES=triton.next_power_of_2(pieces), **flags, LOG=log, num_warps=16,
    )  # fmt: skip
    return y


def backward(dy, y, mask, axis, scale, causal, log, tile=None):
    """Gradient of ``x``, contiguous, from the result and its gradient."""
    g = torch.empty(y.shape, dtype=y.dtype, device=y.device)
    if not y.numel():
        return g
    (A, B, C, R, N), (sy, sm, sd, sg) = folded(axis, y, y if mask is None else mask, dy, g)
    m = y if mask is None else mask.view(torch.uint8)
    rows = y.shape[-2] if causal else 1
    flags = {"MASK": mask is not None, "CAUSAL": causal, "LOG": log}
    if N <= WHOLE // 2:
        tile = tile or tiling(N, R > 1 and sg[3] < sg[4], WHOLE // 2)
        blocks = -(-R // tile["ROWS"])
        _rows_backward[(A * B * C * blocks,)](
            y, m, dy, g, B, C, R, N, blocks, rows, float(scale), *sy, *sm, *sd, *sg, **tile, **flags,
        )  # fmt: skip
        return g
    pieces = triton.cdiv(N, PIECE)
    parts = torch.empty(A * B * C * R * pieces * 3, dtype=torch.promote_types(y.dtype, torch.float32), device=y.device)
    grid = (A * B * C * R * pieces,)
    _along[grid](
        y, m, dy, parts, B, C, R, N, pieces, rows, *sy, *sm, *sd, PIECE=PIECE, **flags, num_warps=16,
    )  # fmt: skip
    _pieces_backward[grid](
        y, m, dy, parts, g, B, C, R, N, pieces, rows, float(scale), *sy, *sm, *sd, *sg, PIECE=PIECE,
        PIECES=triton.next_power_of_2(pieces), **flags, num_warps=16,
    )  # fmt: skip
    return g


class _Softmax(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, mask, axis, scale, causal, log):
        y = forward(x, mask, axis, scale, causal, log)
        ctx.save_for_backward(y, mask)
        ctx.options = (axis, scale, causal, log)
        return y

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, dy):
        return backward(dy, *ctx.saved_tensors, *ctx.options), None, None, None, None, None


def softmax(x, axis, scale):
    return _Softmax.apply(x, None, axis, scale, False, False)


def log_softmax(x, axis, scale):
    return _Softmax.apply(x, None, axis, scale, False, True)


def masked_softmax(x, mask, axis, scale):
    return _Softmax.apply(x, mask.expand(x.shape), axis, scale, False, False)


def causal_softmax(x, scale):
    return _Softmax.apply(x, None, -1, scale, True, False)


def masked_causal_log_softmax(x, mask, scale):
    return _Softmax.apply(x, mask.expand(x.shape), -1, scale, True, True)


def softmax_backward(dy, y, axis, scale):
    return backward(dy, y, None, axis, scale, False, False)


def log_softmax_backward(dy, y, axis, scale):
    return backward(dy, y, None, axis, scale, False, True)
