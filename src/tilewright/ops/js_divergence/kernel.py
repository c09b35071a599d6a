"""Jensen-Shannon divergence of log-probabilities; with a temperature, of two softmaxes that are never stored.

``beta KL(p, m) + (1 - beta) KL(q, m)`` with ``m = beta p + (1 - beta) q``. The logarithm of ``m`` is taken beside the
larger of the two, ``hi + log(w_hi + w_lo e^(lo - hi))``, so that probabilities below the smallest float are no zeros. With a
temperature one pass gives the maximum and the sum of exponentials of each row of both (after M. Milakov, N. Gimelshein,
Online normalizer calculation for softmax, 2018), a second one the terms and what normalising pulls back. No atomics.

A distribution that gives an element probability 0 adds nothing there, and no gradient.
"""

import math

import torch
import triton
import triton.language as tl

LOWEST = tl.constexpr(-3.4028234663852886e38)


@triton.jit
def _place(program, pieces, M, V, ROWS: tl.constexpr, PIECE: tl.constexpr):
    """Rows and first and last column of a program."""
    row = program // pieces * ROWS + tl.arange(0, ROWS)
    first = program % pieces * PIECE
    return row, first, tl.minimum(first + PIECE, V)


@triton.jit
def _tile(x_ptr, t_ptr, row, cols, inside, temperature, sxm, sxv, stm, stv, LOG_TARGET: tl.constexpr,
          TEMPERED: tl.constexpr):  # fmt: skip
    """Target as it lies in memory, and the logarithms of input and target over the temperature, if there is one."""
    x = tl.load(x_ptr + row[:, None] * sxm + cols * sxv, mask=inside, other=0.0).to(tl.float32)
    raw = tl.load(t_ptr + row[:, None] * stm + cols * stv, mask=inside, other=1.0).to(tl.float32)
    t = raw if LOG_TARGET else tl.log(raw)
    if TEMPERED:
        x, t = x / temperature, t / temperature
    return raw, x, t


@triton.jit
def _climb(top, total, s):
    """Maximum and sum of exponentials with one more element a lane."""
    new = tl.maximum(top, s)
    return new, total * tl.exp(top - new) + tl.exp(s - new)


@triton.jit
def _normalise(x_ptr, t_ptr, part_ptr, M, V, pieces, temperature, sxm, sxv, stm, stv, ROWS: tl.constexpr,
               PIECE: tl.constexpr, BLOCK: tl.constexpr, LOG_TARGET: tl.constexpr):  # fmt: skip
    """Of one piece of each row: maximum and sum of exponentials of input and target."""
    program = tl.program_id(0).to(tl.int64)
    row, first, last = _place(program, pieces, M, V, ROWS, PIECE)
    x_top, t_top = tl.full((ROWS, BLOCK), LOWEST, tl.float32), tl.full((ROWS, BLOCK), LOWEST, tl.float32)
    x_sum, t_sum = tl.zeros((ROWS, BLOCK), tl.float32), tl.zeros((ROWS, BLOCK), tl.float32)
    for start in range(first, last, BLOCK):
        cols = (start + tl.arange(0, BLOCK)).to(tl.int64)[None, :]
        inside = (row < M)[:, None] & (cols < last)
        _raw, x, t = _tile(x_ptr, t_ptr, row, cols, inside, temperature, sxm, sxv, stm, stv, LOG_TARGET, True)
        x_top, x_sum = _climb(x_top, x_sum, tl.where(inside, x, -float("inf")))
        t_top, t_sum = _climb(t_top, t_sum, tl.where(inside, t, -float("inf")))
    x_high, t_high = tl.max(x_top, axis=1), tl.max(t_top, axis=1)
    at = part_ptr + (row * pieces + program % pieces) * 4
    tl.store(at, x_high, mask=row < M)
    tl.store(at + 1, tl.sum(x_sum * tl.exp(x_top - x_high[:, None]), axis=1), mask=row < M)
    tl.store(at + 2, t_high, mask=row < M)
    tl.store(at + 3, tl.sum(t_sum * tl.exp(t_top - t_high[:, None]), axis=1), mask=row < M)


@triton.jit
def _join(part_ptr, stat_ptr, M, pieces, ROWS: tl.constexpr, PIECES: tl.constexpr):
    """Maximum and logarithm of the sum of ``ROWS`` rows, of input and target."""
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    piece = tl.arange(0, PIECES)[None, :]
    inside = (row < M)[:, None] & (piece < pieces)
    at = part_ptr + (row[:, None] * pieces + piece) * 4
    for which in tl.static_range(2):
        tops = tl.load(at + 2 * which, mask=inside, other=LOWEST)
        top = tl.max(tops, axis=1)
        total = tl.sum(tl.load(at + 2 * which + 1, mask=inside, other=0.0) * tl.exp(tops - top[:, None]), axis=1)
        tl.store(stat_ptr + row * 4 + 2 * which, top, mask=row < M)
        tl.store(stat_ptr + row * 4 + 2 * which + 1, tl.log(total), mask=row < M)


@triton.jit
def _stats(stat_ptr, row, M):
    """What ``_join`` stored, or zeros."""
    at, mask = stat_ptr + row * 4, row < M
    x_top, x_log = tl.load(at, mask=mask, other=0.0), tl.load(at + 1, mask=mask, other=0.0)
    return x_top, x_log, tl.load(at + 2, mask=mask, other=0.0), tl.load(at + 3, mask=mask, other=0.0)


@triton.jit
def _parts(x_ptr, t_ptr, row, cols, inside, beta, temperature, sxm, sxv, stm, stv, x_top, x_log, t_top, t_log,
           LOG_TARGET: tl.constexpr, TEMPERED: tl.constexpr):  # fmt: skip
    """Target as in memory; ``q``, ``p``; ``(1 - beta) q log(q / m)``, ``beta p log(p / m)``; ``beta log(p / m)``."""
    raw, x, t = _tile(x_ptr, t_ptr, row, cols, inside, temperature, sxm, sxv, stm, stv, LOG_TARGET, TEMPERED)
    p = raw
    if TEMPERED:
        x, t = (x - x_top[:, None]) - x_log[:, None], (t - t_top[:, None]) - t_log[:, None]
    if TEMPERED or LOG_TARGET:
        p = tl.exp(t)
    q = tl.exp(x)
    high = tl.maximum(x, t)
    high = tl.where(high == -float("inf"), 0.0, high)
    ratio = tl.exp(tl.minimum(x, t) - high)
    rest = tl.log(tl.where(x >= t, (1.0 - beta) + beta * ratio, beta + (1.0 - beta) * ratio))
    steep = beta * ((t - high) - rest)
    of_q = tl.where(q == 0.0, 0.0, (1.0 - beta) * q * ((x - high) - rest))
    return raw, q, p, of_q, tl.where(p == 0.0, 0.0, p * steep), steep


@triton.jit
def _sums(x_ptr, t_ptr, stat_ptr, up_ptr, sum_ptr, pull_ptr, M, V, pieces, beta, temperature, sxm, sxv, stm, stv, sum_,
          suv, ROWS: tl.constexpr, PIECE: tl.constexpr, BLOCK: tl.constexpr, LOG_TARGET: tl.constexpr,
          TEMPERED: tl.constexpr, EACH: tl.constexpr):  # fmt: skip
    """Sum of the terms of a piece of ``ROWS`` rows; with a temperature also what normalising pulls back, for each row.
    ``EACH``: every term is weighed with its own incoming gradient."""
    program = tl.program_id(0).to(tl.int64)
    row, first, last = _place(program, pieces, M, V, ROWS, PIECE)
    x_top, x_log, t_top, t_log = _stats(stat_ptr, row, M if TEMPERED else 0)
    of_x, of_t = tl.zeros((ROWS, BLOCK), tl.float32), tl.zeros((ROWS, BLOCK), tl.float32)
    for start in range(first, last, BLOCK):
        cols = (start + tl.arange(0, BLOCK)).to(tl.int64)[None, :]
        inside = (row < M)[:, None] & (cols < last)
        _raw, _q, _p, of_q, of_p, _steep = _parts(
            x_ptr, t_ptr, row, cols, inside, beta, temperature, sxm, sxv, stm, stv, x_top, x_log, t_top, t_log,
            LOG_TARGET, TEMPERED,
        )  # fmt: skip
        if EACH:
            g = tl.load(up_ptr + row[:, None] * sum_ + cols * suv, mask=inside, other=0.0).to(tl.float32)
            of_q, of_p = of_q * g, of_p * g
        of_x += tl.where(inside, of_q, 0.0)
        of_t += tl.where(inside, of_p, 0.0)
    row_x, row_t = tl.sum(of_x, axis=1), tl.sum(of_t, axis=1)
    if TEMPERED:
        at = pull_ptr + (row * pieces + program % pieces) * 2
        tl.store(at, row_x, mask=row < M)
        tl.store(at + 1, row_t, mask=row < M)
    if not EACH:
        tl.store(sum_ptr + program, tl.sum(row_x + row_t, axis=0))


@triton.jit
def _add_up(sum_ptr, out_ptr, blocks, divisor, BLOCK: tl.constexpr):
    """The sum of all, divided; one program, in one order."""
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, blocks, BLOCK):
        at = (start + tl.arange(0, BLOCK)).to(tl.int64)
        total += tl.load(sum_ptr + at, mask=at < blocks, other=0.0)
    tl.store(out_ptr, tl.sum(total, axis=0) / divisor)


@triton.jit
def _elements(x_ptr, t_ptr, stat_ptr, out_ptr, M, V, pieces, beta, temperature, sxm, sxv, stm, stv, ROWS: tl.constexpr,
              PIECE: tl.constexpr, BLOCK: tl.constexpr, LOG_TARGET: tl.constexpr, TEMPERED: tl.constexpr):  # fmt: skip
    """All terms, each for itself."""
    program = tl.program_id(0).to(tl.int64)
    row, first, last = _place(program, pieces, M, V, ROWS, PIECE)
    x_top, x_log, t_top, t_log = _stats(stat_ptr, row, M if TEMPERED else 0)
    for start in range(first, last, BLOCK):
        cols = (start + tl.arange(0, BLOCK)).to(tl.int64)[None, :]
        inside = (row < M)[:, None] & (cols < last)
        _raw, _q, _p, of_q, of_p, _steep = _parts(
            x_ptr, t_ptr, row, cols, inside, beta, temperature, sxm, sxv, stm, stv, x_top, x_log, t_top, t_log,
            LOG_TARGET, TEMPERED,
        )  # fmt: skip
        tl.store(out_ptr + row[:, None] * V + cols, of_q + of_p, mask=inside)


@triton.jit
def _gradients(x_ptr, t_ptr, stat_ptr, pull_ptr, up_ptr, dx_ptr, dt_ptr, M, V, pieces, divisor, beta, temperature, sxm,
               sxv, stm, stv, sum_, suv, ROWS: tl.constexpr, PIECE: tl.constexpr, PIECES: tl.constexpr,
               BLOCK: tl.constexpr, LOG_TARGET: tl.constexpr, TEMPERED: tl.constexpr, EACH: tl.constexpr,
               WANT_X: tl.constexpr, WANT_T: tl.constexpr):  # fmt: skip
    """Gradients of a piece of ``ROWS`` rows of input, target or both; each is read once."""
    program = tl.program_id(0).to(tl.int64)
    row, first, last = _place(program, pieces, M, V, ROWS, PIECE)
    x_top, x_log, t_top, t_log = _stats(stat_ptr, row, M if TEMPERED else 0)
    whole = 1.0 if EACH else tl.load(up_ptr).to(tl.float32) / divisor
    if TEMPERED:
        piece = tl.arange(0, PIECES)[None, :]
        at = pull_ptr + (row[:, None] * pieces + piece) * 2
        some = (row < M)[:, None] & (piece < pieces)
        pull_x = whole * tl.sum(tl.load(at, mask=some, other=0.0), axis=1)
        pull_t = whole * tl.sum(tl.load(at + 1, mask=some, other=0.0), axis=1)
    for start in range(first, last, BLOCK):
        cols = (start + tl.arange(0, BLOCK)).to(tl.int64)[None, :]
        inside = (row < M)[:, None] & (cols < last)
        raw, q, p, of_q, of_p, steep = _parts(
            x_ptr, t_ptr, row, cols, inside, beta, temperature, sxm, sxv, stm, stv, x_top, x_log, t_top, t_log,
            LOG_TARGET, TEMPERED,
        )  # fmt: skip
        g = whole
        if EACH:
            g = tl.load(up_ptr + row[:, None] * sum_ + cols * suv, mask=inside, other=0.0).to(tl.float32)
        to = row[:, None] * V + cols
        if WANT_X:
            dx = g * of_q
            if TEMPERED:
                dx = (dx - q * pull_x[:, None]) / temperature
            tl.store(dx_ptr + to, dx, mask=inside)
        if WANT_T:
            dt = g * of_p if LOG_TARGET or TEMPERED else g * steep
            if TEMPERED:
                dt = (dt - p * pull_t[:, None]) / temperature
            if not LOG_TARGET:
                dt = tl.where(raw == 0.0, 0.0, dt / raw if TEMPERED else dt)
            tl.store(dt_ptr + to, dt, mask=inside)


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


def forward(x, target, log_target, beta, temperature, reduction, divisor):
    """Divergence (each term, or their sum or a mean), float32; for backward ``stats`` (rows, 4) and ``pulls``."""
    M, V = x.shape
    new = lambda *shape: torch.empty(shape, dtype=torch.float32, device=x.device)  # noqa: E731
    tile, pieces, programs = tiling(M, V)
    tempered, each = temperature is not None, reduction == "none"
    heat, strides = float(temperature or 1.0), (*x.stride(), *target.stride())
    stats, pulls = new(M if tempered else 0, 4), new(M * pieces if tempered and not each else 0, 2)
    flags = {**tile, "LOG_TARGET": log_target}
    if tempered and programs:
        parts = new(M * pieces, 4)
        _normalise[(programs,)](x, target, parts, M, V, pieces, heat, *strides, **flags)
        _join[(triton.cdiv(M, 4),)](
            parts, stats, M, pieces, ROWS=4, PIECES=triton.next_power_of_2(pieces), num_warps=1
        )  # fmt: skip
    out = new(M, V) if each else new()
    numbers = (float(beta), heat, *strides)
    if each and programs:
        _elements[(programs,)](x, target, stats, out, M, V, pieces, *numbers, **flags, TEMPERED=tempered)
    if not each:
        sums = new(programs)
        if programs:
            _sums[(programs,)](
                x,
                target,
                stats,
                sums,
                sums,
                pulls,
                M,
                V,
                pieces,
                *numbers,
                0,
                0,
                **flags,
                TEMPERED=tempered,
                EACH=False,
            )
        _add_up[(1,)](sums, out, programs, divisor, BLOCK=1024)
    return out, stats, pulls


def backward(upstream, x, target, stats, pulls, log_target, beta, temperature, reduction, divisor, wanted):
    """Gradients of input and target, contiguous, those that are ``wanted``."""
    M, V = x.shape
    tile, pieces, programs = tiling(M, V)
    tempered, each = temperature is not None, reduction == "none"
    numbers = (float(beta), float(temperature or 1.0), *x.stride(), *target.stride())
    up, flags = upstream.stride() if each else (0, 0), {**tile, "LOG_TARGET": log_target, "TEMPERED": tempered}
    dx, dt = (
        torch.empty((M, V) if w else (0,), dtype=t.dtype, device=t.device)
        for t, w in zip((x, target), wanted, strict=True)
    )
    if programs and tempered and each:
        pulls = torch.empty((M * pieces, 2), dtype=torch.float32, device=x.device)
        _sums[(programs,)](x, target, stats, upstream, pulls, pulls, M, V, pieces, *numbers, *up, **flags, EACH=True)
    if programs and any(wanted):
        _gradients[(programs,)](
            x, target, stats, pulls, upstream, dx, dt, M, V, pieces, divisor, *numbers, *up,
            **flags, PIECES=triton.next_power_of_2(pieces), EACH=each, WANT_X=wanted[0], WANT_T=wanted[1],
        )  # fmt: skip
    return tuple(g if w else None for g, w in zip((dx, dt), wanted, strict=True))


class _Divergence(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, target, *options):
        out, stats, pulls = forward(x, target, *options)
        ctx.save_for_backward(x, target, stats, pulls)
        ctx.options = options
        return out

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, upstream):
        grads = backward(upstream, *ctx.saved_tensors, *ctx.options, ctx.needs_input_grad[:2])
        return *grads, *[None] * len(ctx.options)


def kernel(x, target, log_target, beta, temperature, reduction):
    return _Divergence.apply(x, target, log_target, beta, temperature, reduction, divisor_of(x.shape, reduction))
