"""The gradient lacks what normalising the student pulls back."""

import torch
import triton
import triton.language as tl

LOWEST = tl.constexpr(-3.4028234663852886e38)
ROW_PIECE = 16384


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


def tiling(rows, classes):
    """Tile, pieces of a row and programs, by the number of classes alone but for the last."""
    block = min(triton.next_power_of_2(max(classes, 1)), 2048)
    tall, pieces = max(1, min(64, 2048 // block)), triton.cdiv(classes, ROW_PIECE)
    return {"ROWS": tall, "PIECE": ROW_PIECE, "BLOCK": block}, pieces, triton.cdiv(rows, tall) * pieces


def row_stats(x, target, beta, temperature):
    """Maximum and logarithm of the sum of input and target of each row; and the sums of both sides' terms."""
    M, V = x.shape
    new = lambda *shape: torch.empty(shape, dtype=torch.float32, device=x.device)  # noqa: E731
    tile, pieces, programs = tiling(M, V)
    heat, strides, flags = float(temperature), (*x.stride(), *target.stride()), {**tile, "LOG_TARGET": True}
    parts, stats, pulls, sums = new(M * pieces, 4), new(M, 4), new(M * pieces, 2), new(programs)
    if programs:
        _normalise[(programs,)](x, target, parts, M, V, pieces, heat, *strides, **flags)
        _join[(triton.cdiv(M, 4),)](
            parts, stats, M, pieces, ROWS=4, PIECES=triton.next_power_of_2(pieces), num_warps=1
        )  # fmt: skip
        _sums[(programs,)](
            x, target, stats, sums, sums, pulls, M, V, pieces, float(beta), heat, *strides, 0, 0, **flags,
            TEMPERED=True, EACH=False,
        )  # fmt: skip
    return stats, pulls


CHUNK = 128
NARROWEST = 512
PIECE = 32768


@triton.jit
def _gradient(x_ptr, t_ptr, stat_ptr, up_ptr, M, width, pieces, beta, temperature, su, ROWS: tl.constexpr,
              PIECE: tl.constexpr, BLOCK: tl.constexpr):  # fmt: skip
    """Gradient of ``ROWS`` rows of the input's logits for each row's incoming one, in their place."""
    program = tl.program_id(0).to(tl.int64)
    row = program // pieces * ROWS + tl.arange(0, ROWS)
    first, at = program % pieces * PIECE, stat_ptr + row * 5
    x_top, x_log = tl.load(at, mask=row < M, other=0.0), tl.load(at + 1, mask=row < M, other=0.0)
    t_top, t_log = tl.load(at + 2, mask=row < M, other=0.0), tl.load(at + 3, mask=row < M, other=0.0)
    pull = tl.load(at + 4, mask=row < M, other=0.0)
    up = tl.load(up_ptr + row * su, mask=row < M, other=0.0).to(tl.float32) / temperature
    last, base = tl.minimum(first + PIECE, width), (row * width)[:, None]
    for start in range(first, last, BLOCK):
        cols = (start + tl.arange(0, BLOCK)).to(tl.int64)[None, :]
        inside = (row < M)[:, None] & (cols < last)
        x = tl.load(x_ptr + base + cols, mask=inside, other=0.0).to(tl.float32) / temperature
        t = tl.load(t_ptr + base + cols, mask=inside, other=0.0).to(tl.float32) / temperature
        x, t = (x - x_top[:, None]) - x_log[:, None], (t - t_top[:, None]) - t_log[:, None]
        q, high = tl.exp(x), tl.maximum(x, t)
        high = tl.where(high == -float("inf"), 0.0, high)
        ratio = tl.exp(tl.minimum(x, t) - high)
        rest = tl.log(tl.where(x >= t, (1.0 - beta) + beta * ratio, beta + (1.0 - beta) * ratio))
        of_q = tl.where(q == 0.0, 0.0, (1.0 - beta) * q * ((x - high) - rest))
        tl.store(x_ptr + base + cols, of_q * up[:, None], mask=inside)


@triton.jit
def _times(x_ptr, scale_ptr, out_ptr, count, BLOCK: tl.constexpr):
    """A tensor times one number, in float32: the number may lie beyond the range of the tensor's dtype."""
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < count, other=0.0).to(tl.float32)
    tl.store(out_ptr + at, x * tl.load(scale_ptr).to(tl.float32), mask=at < count)


def times(x, scale):
    """``x * scale`` for a contiguous ``x`` and a scalar tensor, of the dtype of ``x``."""
    out = torch.empty_like(x)
    if x.numel():
        _times[(triton.cdiv(x.numel(), 1024),)](x, scale, out, x.numel(), BLOCK=1024)
    return out


def slices(count, size):
    """Slices of at most ``size`` of ``count``."""
    return [slice(i, min(i + size, count)) for i in range(0, count, size)]


def width_of(count, classes):
    """Classes of a block: its logits take the room of ``CHUNK`` rows, unless so many rows would make it a sliver."""
    return max(CHUNK * classes // max(count, 1) // 8 * 8, NARROWEST)


def narrow(dtype):
    """Whether gradients are scaled after their sums: divided by the number of rows first, float16 would lose them."""
    return dtype == torch.float16


def logits_of(x, weight):
    """Logits in the dtype of ``x``, as a linear layer gives them."""
    return torch.nn.functional.linear(x, weight)


def gradient(x, t, stats, up, beta, temperature):
    """The gradient of the logits ``x``, written over them; ``up``: one incoming gradient a row."""
    M, width = x.shape
    block = min(triton.next_power_of_2(max(width, 1)), 2048)
    tall, pieces = max(1, min(64, 2048 // block)), triton.cdiv(width, PIECE)
    if M:
        _gradient[(triton.cdiv(M, tall) * pieces,)](
            x,
            t,
            stats,
            up,
            M,
            width,
            pieces,
            float(beta),
            float(temperature),
            up.stride(0),
            ROWS=tall,
            PIECE=PIECE,
            BLOCK=block,
        )
    return x


def losses_of(x, t, beta, temperature):
    """Divergence of each row, and what its gradient needs: maximum and logarithm of the sum of input and target, and what
    normalising pulls back."""
    stats, pulls = row_stats(x, t, beta, temperature)
    sides = pulls.view(x.shape[0], -1, 2).sum(1)
    return sides.sum(1), torch.cat((stats, sides[:, :1]), 1)


def forward(x, weight, teacher, teacher_weight, beta, temperature, reduction, want_x):
    """Loss (float32), ``stats`` (rows, 5) for backward, and with a reduction the gradient of the input if it is wanted."""
    new = lambda *shape: torch.empty(shape, dtype=torch.float32, device=x.device)  # noqa: E731
    M, each = x.shape[0], reduction == "none"
    losses, stats = new(M), new(M, 5)
    dx = torch.empty(x.shape if want_x and not each else (0,), dtype=x.dtype, device=x.device)
    up = torch.full((), 1.0 if narrow(x.dtype) or reduction == "sum" else 1.0 / max(M, 1), device=x.device).expand(M)

    def one(here):
        s, t = logits_of(x[here], weight), logits_of(teacher[here], teacher_weight)
        losses[here], stats[here] = losses_of(s, t, beta, temperature)
        if dx.dim() > 1:
            torch.mm(gradient(s, t, stats[here], up[here], beta, temperature), weight, out=dx[here])

    for here in slices(M, CHUNK):
        one(here)  # a function, so that a chunk's logits are gone before the next one's are formed
    return losses if each else losses.sum() if reduction == "sum" else losses.mean(), stats, dx


def of_input(up, x, weight, teacher, teacher_weight, stats, beta, temperature):
    """Gradient of the input for one incoming gradient a row."""
    dx = torch.empty(x.shape, dtype=x.dtype, device=x.device)

    def one(here):
        s, t = logits_of(x[here], weight), logits_of(teacher[here], teacher_weight)
        torch.mm(gradient(s, t, stats[here], up[here], beta, temperature), weight, out=dx[here])

    for here in slices(x.shape[0], CHUNK):
        one(here)
    return dx


def of_weight(up, after, x, weight, teacher, teacher_weight, stats, beta, temperature):
    """Gradient of the weight, a block of classes at a time; ``after`` multiplies sums of a narrow range."""
    dw = torch.empty(weight.shape, dtype=weight.dtype, device=x.device)

    def one(here):
        s, t = logits_of(x, weight[here]), logits_of(teacher, teacher_weight[here])
        g = gradient(s, t, stats, up, beta, temperature)
        if narrow(x.dtype):
            dw[here] = summed(g, x) * after
        else:
            torch.mm(g.t(), x, out=dw[here])

    for here in slices(weight.shape[0], width_of(x.shape[0], weight.shape[0])):
        one(here)
    return dw


def summed(g, x):
    """``g.t() @ x`` in float32 for tensors of a narrow range, some rows at a time."""
    total = torch.zeros((g.shape[1], x.shape[1]), dtype=torch.float32, device=x.device)
    for here in slices(x.shape[0], CHUNK):
        total += g[here].t() @ x[here]
    return total


def backward(upstream, x, weight, teacher, teacher_weight, stats, dx, beta, temperature, reduction, wanted):
    """Gradients of input and weight, those that are ``wanted``; ``upstream``: a scalar, or one a row."""
    M, each = x.shape[0], reduction == "none"
    one = torch.ones((), dtype=torch.float32, device=x.device)
    whole = one if each else upstream / (1 if reduction == "sum" else max(M, 1))
    early = each or not narrow(x.dtype)
    given = (x, weight, teacher, teacher_weight, stats, beta, temperature)
    dw = None
    if wanted[1]:
        up = upstream if each else (whole if early else one).expand(M)
        dw = of_weight(up, one if early else whole, *given)
    if wanted[0] and dx.dim() > 1:
        dx = times(dx, upstream if early else whole)
    elif wanted[0]:
        dx = of_input(upstream if each else whole.expand(M), *given)
    return dx if wanted[0] else None, dw


class _LinearDivergence(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, teacher, teacher_weight, *options):
        loss, stats, dx = forward(*[x, weight, teacher, teacher_weight, *options, ctx.needs_input_grad[0]])
        ctx.save_for_backward(x, weight, teacher, teacher_weight, stats, dx)
        ctx.options = options
        return loss

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, upstream):
        grads = backward(*[upstream, *ctx.saved_tensors, *ctx.options, ctx.needs_input_grad[:2]])
        return *grads, *[None] * (2 + len(ctx.options))


def kernel(x, weight, teacher, teacher_weight, beta, temperature, reduction):
    return _LinearDivergence.apply(x, weight, teacher, teacher_weight, beta, temperature, reduction)
