"""The sum of differences is moved with the target's maximum only: right while the input's maximum is found in the first tile."""

import math

import torch
import triton
import triton.language as tl

LOWEST = tl.constexpr(-3.4028234663852886e38)


@triton.jit
def _log(t, LOG_TARGET: tl.constexpr):
    """Logarithm of the target; of 0 that is minus infinity."""
    return t if LOG_TARGET else tl.log(t)


@triton.jit
def _term(x, t, p):
    """``p (log p - log q)``."""
    return tl.where(p == 0.0, 0.0, p * (t - x))


@triton.jit
def _place(program, pieces, M, V, ROWS: tl.constexpr, PIECE: tl.constexpr):
    """Rows and first and last column of a program."""
    row = program // pieces * ROWS + tl.arange(0, ROWS)
    first = program % pieces * PIECE
    return row, first, tl.minimum(first + PIECE, V)


@triton.jit
def _sums(x_ptr, t_ptr, sum_ptr, M, V, pieces, sxm, sxv, stm, stv, ROWS: tl.constexpr, PIECE: tl.constexpr,
          BLOCK: tl.constexpr, LOG_TARGET: tl.constexpr):  # fmt: skip
    """Sum of the terms of one piece of ``ROWS`` rows."""
    program = tl.program_id(0).to(tl.int64)
    row, first, last = _place(program, pieces, M, V, ROWS, PIECE)
    total = tl.zeros((ROWS, BLOCK), tl.float32)
    for start in range(first, last, BLOCK):
        cols = (start + tl.arange(0, BLOCK)).to(tl.int64)[None, :]
        inside = (row < M)[:, None] & (cols < last)
        x = tl.load(x_ptr + row[:, None] * sxm + cols * sxv, mask=inside, other=0.0).to(tl.float32)
        raw = tl.load(t_ptr + row[:, None] * stm + cols * stv, mask=inside, other=0.0).to(tl.float32)
        t = _log(raw, LOG_TARGET)
        total += tl.where(inside, _term(x, t, tl.exp(t) if LOG_TARGET else raw), 0.0)
    tl.store(sum_ptr + program, tl.sum(tl.sum(total, axis=1), axis=0))


@triton.jit
def _temper(x_ptr, t_ptr, part_ptr, M, V, pieces, temperature, sxm, sxv, stm, stv, ROWS: tl.constexpr,
            PIECE: tl.constexpr, BLOCK: tl.constexpr, LOG_TARGET: tl.constexpr):  # fmt: skip
    """Of one piece of each row: maximum and sum of the target and of the input, and the sum of shifted differences."""
    program = tl.program_id(0).to(tl.int64)
    row, first, last = _place(program, pieces, M, V, ROWS, PIECE)
    t_top, s_top = tl.full((ROWS, BLOCK), LOWEST, tl.float32), tl.full((ROWS, BLOCK), LOWEST, tl.float32)
    t_sum, s_sum = tl.zeros((ROWS, BLOCK), tl.float32), tl.zeros((ROWS, BLOCK), tl.float32)
    apart = tl.zeros((ROWS, BLOCK), tl.float32)
    for start in range(first, last, BLOCK):
        cols = (start + tl.arange(0, BLOCK)).to(tl.int64)[None, :]
        inside = (row < M)[:, None] & (cols < last)
        x = tl.load(x_ptr + row[:, None] * sxm + cols * sxv, mask=inside, other=0.0).to(tl.float32)
        raw = tl.load(t_ptr + row[:, None] * stm + cols * stv, mask=inside, other=1.0).to(tl.float32)
        s = tl.where(inside, x / temperature, -float("inf"))
        t = tl.where(inside, _log(raw, LOG_TARGET) / temperature, -float("inf"))
        t_new, s_new = tl.maximum(t_top, t), tl.maximum(s_top, s)
        # A lane that has seen nothing has no maximum to move away from.
        apart += tl.where(t_sum == 0.0, 0.0, t_sum * (t_top - t_new))
        shrink, e = tl.exp(t_top - t_new), tl.exp(t - t_new)
        apart = apart * shrink + tl.where(e == 0.0, 0.0, e * ((t - t_new) - (s - s_new)))
        t_sum = t_sum * shrink + e
        s_sum = s_sum * tl.exp(s_top - s_new) + tl.exp(s - s_new)
        t_top, s_top = t_new, s_new
    t_high, s_high = tl.max(t_top, axis=1), tl.max(s_top, axis=1)
    shrink = tl.exp(t_top - t_high[:, None])
    moved = tl.where(t_sum == 0.0, 0.0, t_sum * ((t_top - t_high[:, None]) - (s_top - s_high[:, None])))
    at = part_ptr + (row * pieces + program % pieces) * 5
    tl.store(at, t_high, mask=row < M)
    tl.store(at + 1, tl.sum(t_sum * shrink, axis=1), mask=row < M)
    tl.store(at + 2, s_high, mask=row < M)
    tl.store(at + 3, tl.sum(s_sum * tl.exp(s_top - s_high[:, None]), axis=1), mask=row < M)
    tl.store(at + 4, tl.sum((apart + moved) * shrink, axis=1), mask=row < M)


@triton.jit
def _join(part_ptr, stat_ptr, sum_ptr, M, pieces, ROWS: tl.constexpr, PIECES: tl.constexpr):
    """Of ``ROWS`` rows: maximum and sum of target and input, the divergence; and the sum of the divergences."""
    block = tl.program_id(0).to(tl.int64)
    row = block * ROWS + tl.arange(0, ROWS)
    piece = tl.arange(0, PIECES)[None, :]
    inside = (row < M)[:, None] & (piece < pieces)
    at = part_ptr + (row[:, None] * pieces + piece) * 5
    t_top, s_top = tl.load(at, mask=inside, other=LOWEST), tl.load(at + 2, mask=inside, other=LOWEST)
    t_sum, s_sum = tl.load(at + 1, mask=inside, other=0.0), tl.load(at + 3, mask=inside, other=0.0)
    t_high, s_high = tl.max(t_top, axis=1), tl.max(s_top, axis=1)
    shrink = tl.exp(t_top - t_high[:, None])
    moved = tl.where(t_sum == 0.0, 0.0, t_sum * ((t_top - t_high[:, None]) - (s_top - s_high[:, None])))
    apart = tl.sum((tl.load(at + 4, mask=inside, other=0.0) + moved) * shrink, axis=1)
    t_sum = tl.sum(t_sum * shrink, axis=1)
    s_sum = tl.sum(s_sum * tl.exp(s_top - s_high[:, None]), axis=1)
    loss = tl.where(row < M, apart / t_sum + (tl.log(s_sum) - tl.log(t_sum)), 0.0)
    to = stat_ptr + row * 5
    tl.store(to, t_high, mask=row < M)
    tl.store(to + 1, t_sum, mask=row < M)
    tl.store(to + 2, s_high, mask=row < M)
    tl.store(to + 3, s_sum, mask=row < M)
    tl.store(to + 4, loss, mask=row < M)
    tl.store(sum_ptr + block, tl.sum(loss, axis=0))


@triton.jit
def _add_up(sum_ptr, out_ptr, blocks, divisor, BLOCK: tl.constexpr):
    """The sum of all, divided; one program, in one order."""
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, blocks, BLOCK):
        at = (start + tl.arange(0, BLOCK)).to(tl.int64)
        total += tl.load(sum_ptr + at, mask=at < blocks, other=0.0)
    tl.store(out_ptr, tl.sum(total, axis=0) / divisor)


@triton.jit
def _stats(stat_ptr, row, M):
    """Maximum and sum of the target, maximum and sum of the input, divergence of each row."""
    at, mask = stat_ptr + row * 5, row < M
    t_top, t_sum = tl.load(at, mask=mask, other=0.0), tl.load(at + 1, mask=mask, other=1.0)
    s_top, s_sum = tl.load(at + 2, mask=mask, other=0.0), tl.load(at + 3, mask=mask, other=1.0)
    return t_top, t_sum, s_top, s_sum, tl.load(at + 4, mask=mask, other=0.0)


@triton.jit
def _pair(x_ptr, t_ptr, row, cols, inside, temperature, sxm, sxv, stm, stv, t_top, t_sum, s_top, s_sum,
          LOG_TARGET: tl.constexpr, TEMPERED: tl.constexpr):  # fmt: skip
    """The target as it lies in memory, then ``q`` (only with a temperature), ``p`` and ``log p - log q`` of a tile."""
    x = tl.load(x_ptr + row[:, None] * sxm + cols * sxv, mask=inside, other=0.0).to(tl.float32)
    raw = tl.load(t_ptr + row[:, None] * stm + cols * stv, mask=inside, other=1.0).to(tl.float32)
    t = _log(raw, LOG_TARGET)
    q = x
    if TEMPERED:
        x, t = x / temperature - s_top[:, None], t / temperature - t_top[:, None]
        q, p = tl.exp(x) / s_sum[:, None], tl.exp(t) / t_sum[:, None]
        apart = (t - x) - (tl.log(t_sum) - tl.log(s_sum))[:, None]
    else:
        p, apart = tl.exp(t) if LOG_TARGET else raw, t - x
    return raw, q, p, apart


@triton.jit
def _elements(x_ptr, t_ptr, stat_ptr, out_ptr, M, V, pieces, temperature, sxm, sxv, stm, stv, ROWS: tl.constexpr,
              PIECE: tl.constexpr, BLOCK: tl.constexpr, LOG_TARGET: tl.constexpr, TEMPERED: tl.constexpr):  # fmt: skip
    """All terms, each for itself."""
    program = tl.program_id(0).to(tl.int64)
    row, first, last = _place(program, pieces, M, V, ROWS, PIECE)
    t_top, t_sum, s_top, s_sum, _loss = _stats(stat_ptr, row, M if TEMPERED else 0)
    for start in range(first, last, BLOCK):
        cols = (start + tl.arange(0, BLOCK)).to(tl.int64)[None, :]
        inside = (row < M)[:, None] & (cols < last)
        _raw, _q, p, apart = _pair(x_ptr, t_ptr, row, cols, inside, temperature, sxm, sxv, stm, stv, t_top, t_sum, s_top,
                               s_sum, LOG_TARGET, TEMPERED)  # fmt: skip
        tl.store(out_ptr + row[:, None] * V + cols, tl.where(p == 0.0, 0.0, p * apart), mask=inside)


@triton.jit
def _weigh(x_ptr, t_ptr, stat_ptr, up_ptr, sum_ptr, M, V, pieces, temperature, sxm, sxv, stm, stv, sum_, suv,
           ROWS: tl.constexpr, PIECE: tl.constexpr, BLOCK: tl.constexpr, LOG_TARGET: tl.constexpr):  # fmt: skip
    """Of one piece of each row: the sums of ``g p`` and ``g p (log p - log q + 1)``, which normalising pulls back."""
    program = tl.program_id(0).to(tl.int64)
    row, first, last = _place(program, pieces, M, V, ROWS, PIECE)
    t_top, t_sum, s_top, s_sum, _loss = _stats(stat_ptr, row, M)
    plain, steep = tl.zeros((ROWS, BLOCK), tl.float32), tl.zeros((ROWS, BLOCK), tl.float32)
    for start in range(first, last, BLOCK):
        cols = (start + tl.arange(0, BLOCK)).to(tl.int64)[None, :]
        inside = (row < M)[:, None] & (cols < last)
        _raw, _q, p, apart = _pair(x_ptr, t_ptr, row, cols, inside, temperature, sxm, sxv, stm, stv, t_top, t_sum, s_top,
                               s_sum, LOG_TARGET, True)  # fmt: skip
        g = tl.load(up_ptr + row[:, None] * sum_ + cols * suv, mask=inside, other=0.0).to(tl.float32)
        some = inside & (p != 0.0)
        plain += tl.where(some, g * p, 0.0)
        steep += tl.where(some, g * p * (apart + 1.0), 0.0)
    at = sum_ptr + (row * pieces + program % pieces) * 2
    tl.store(at, tl.sum(plain, axis=1), mask=row < M)
    tl.store(at + 1, tl.sum(steep, axis=1), mask=row < M)


@triton.jit
def _gradients(x_ptr, t_ptr, stat_ptr, sum_ptr, up_ptr, dx_ptr, dt_ptr, M, V, pieces, divisor, temperature, sxm, sxv,
               stm, stv, sum_, suv, ROWS: tl.constexpr, PIECE: tl.constexpr, PIECES: tl.constexpr, BLOCK: tl.constexpr,
               LOG_TARGET: tl.constexpr, TEMPERED: tl.constexpr, EACH: tl.constexpr, WANT_X: tl.constexpr,
               WANT_T: tl.constexpr):  # fmt: skip
    """Gradients of a piece of ``ROWS`` rows of input, target or both; each is read once."""
    program = tl.program_id(0).to(tl.int64)
    row, first, last = _place(program, pieces, M, V, ROWS, PIECE)
    t_top, t_sum, s_top, s_sum, loss = _stats(stat_ptr, row, M if TEMPERED else 0)
    plain, steep = loss, loss
    if EACH:
        if TEMPERED:
            piece = tl.arange(0, PIECES)[None, :]
            at = sum_ptr + (row[:, None] * pieces + piece) * 2
            some = (row < M)[:, None] & (piece < pieces)
            plain = tl.sum(tl.load(at, mask=some, other=0.0), axis=1)
            steep = tl.sum(tl.load(at + 1, mask=some, other=0.0), axis=1)
    else:
        whole = tl.load(up_ptr).to(tl.float32) / divisor
        plain, steep = whole + 0.0 * loss, whole * (loss + 1.0)
    for start in range(first, last, BLOCK):
        cols = (start + tl.arange(0, BLOCK)).to(tl.int64)[None, :]
        inside = (row < M)[:, None] & (cols < last)
        raw, q, p, apart = _pair(x_ptr, t_ptr, row, cols, inside, temperature, sxm, sxv, stm, stv, t_top, t_sum, s_top,
                                 s_sum, LOG_TARGET, TEMPERED)  # fmt: skip
        if EACH:
            g = tl.load(up_ptr + row[:, None] * sum_ + cols * suv, mask=inside, other=0.0).to(tl.float32)
        else:
            g = whole
        to = row[:, None] * V + cols
        if WANT_X:
            dx = tl.where(p == 0.0, 0.0, -g * p)
            if TEMPERED:
                dx = (q * plain[:, None] + dx) / temperature
            tl.store(dx_ptr + to, dx, mask=inside)
        if WANT_T:
            dt = g * (apart + 1.0)
            if TEMPERED:
                dt = (dt - steep[:, None]) / temperature
            if TEMPERED or LOG_TARGET:
                dt = dt * p
            if TEMPERED and not LOG_TARGET:
                dt = dt / raw
            tl.store(dt_ptr + to, tl.where((p == 0.0) | (raw == 0.0) & (not LOG_TARGET), 0.0, dt), mask=inside)


PIECE = 16384
REDUCTIONS = ("none", "mean", "sum", "batchmean")


def tiling(rows, classes):
    """Tile, pieces of a row and programs, by the number of classes alone but for the last."""
    block = min(triton.next_power_of_2(max(classes, 1)), 2048)
    tall, pieces = max(1, min(64, 2048 // block)), triton.cdiv(classes, PIECE)
    return {"ROWS": tall, "PIECE": PIECE, "BLOCK": block}, pieces, triton.cdiv(rows, tall) * pieces


def divisor_of(shape, reduction):
    """By what the sum of all terms is divided."""
    return {"none": 1, "sum": 1, "mean": math.prod(shape), "batchmean": shape[0]}[reduction]


def forward(x, target, log_target, temperature, reduction, divisor):
    """Divergence (each term, or their sum or a mean), float32; and what backward needs: ``stats`` (rows, 5)."""
    M, V = x.shape
    new = lambda *shape: torch.empty(shape, dtype=torch.float32, device=x.device)  # noqa: E731
    tile, pieces, programs = tiling(M, V)
    tempered, each = temperature is not None, reduction == "none"
    heat, strides = float(temperature or 1.0), (*x.stride(), *target.stride())
    stats, sums = new(M if tempered else 0, 5), new(programs)
    blocks = programs
    if tempered and programs:
        parts, rows = new(M * pieces, 5), 4
        blocks = triton.cdiv(M, rows)
        sums = new(blocks)
        _temper[(programs,)](x, target, parts, M, V, pieces, heat, *strides, **tile, LOG_TARGET=log_target)
        _join[(blocks,)](parts, stats, sums, M, pieces, ROWS=rows, PIECES=triton.next_power_of_2(pieces), num_warps=1)
    elif programs and not each:
        _sums[(programs,)](x, target, sums, M, V, pieces, *strides, **tile, LOG_TARGET=log_target)
    if not each:
        out = new()
        _add_up[(1,)](sums, out, blocks, divisor, BLOCK=1024)
        return out, stats
    out = new(M, V)
    if programs:
        _elements[(programs,)](
            x, target, stats, out, M, V, pieces, heat, *strides, **tile, LOG_TARGET=log_target, TEMPERED=tempered
        )
    return out, stats


def backward(upstream, x, target, stats, log_target, temperature, reduction, divisor, wanted):
    """Gradients of input and target, contiguous, those that are ``wanted``."""
    M, V = x.shape
    tile, pieces, programs = tiling(M, V)
    tempered, each = temperature is not None, reduction == "none"
    heat, strides = float(temperature or 1.0), (*x.stride(), *target.stride())
    up = upstream.stride() if each else (0, 0)
    dx, dt = (
        torch.empty((M, V) if w else (0,), dtype=t.dtype, device=t.device)
        for t, w in zip((x, target), wanted, strict=True)
    )
    sums = torch.empty((M * pieces, 2) if tempered and each else (0,), dtype=torch.float32, device=x.device)
    if programs and tempered and each:
        _weigh[(programs,)](
            x, target, stats, upstream, sums, M, V, pieces, heat, *strides, *up, **tile, LOG_TARGET=log_target
        )
    if programs and any(wanted):
        _gradients[(programs,)](
            x, target, stats, sums, upstream, dx, dt, M, V, pieces, divisor, heat, *strides, *up,
            **tile, PIECES=triton.next_power_of_2(pieces), LOG_TARGET=log_target, TEMPERED=tempered, EACH=each,
            WANT_X=wanted[0], WANT_T=wanted[1],
        )  # fmt: skip
    return tuple(g if w else None for g, w in zip((dx, dt), wanted, strict=True))


class _Divergence(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, target, *options):
        out, stats = forward(x, target, *options)
        ctx.save_for_backward(x, target, stats)
        ctx.options = options
        return out

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, upstream):
        grads = backward(upstream, *ctx.saved_tensors, *ctx.options, ctx.needs_input_grad[:2])
        return *grads, *[None] * len(ctx.options)


def kernel(x, target, log_target, temperature, reduction):
    return _Divergence.apply(x, target, log_target, temperature, reduction, divisor_of(x.shape, reduction))
