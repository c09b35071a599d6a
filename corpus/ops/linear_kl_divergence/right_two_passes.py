"""Chunks of rows for the loss, blocks of classes for the gradient of the weight, whose logits are formed again."""

import torch
import triton
import triton.language as tl

LOWEST = tl.constexpr(-3.4028234663852886e38)
ROW_PIECE = 16384


@triton.jit
def _log(t, LOG_TARGET: tl.constexpr):
    """Logarithm of the target; of 0 that is minus infinity."""
    return t if LOG_TARGET else tl.log(t)


@triton.jit
def _place(program, pieces, M, V, ROWS: tl.constexpr, PIECE: tl.constexpr):
    """Rows and first and last column of a program."""
    row = program // pieces * ROWS + tl.arange(0, ROWS)
    first = program % pieces * PIECE
    return row, first, tl.minimum(first + PIECE, V)


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
        apart += tl.where(t_sum == 0.0, 0.0, t_sum * ((t_top - t_new) - (s_top - s_new)))
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


def tiling(rows, classes):
    """Tile, pieces of a row and programs, by the number of classes alone but for the last."""
    block = min(triton.next_power_of_2(max(classes, 1)), 2048)
    tall, pieces = max(1, min(64, 2048 // block)), triton.cdiv(classes, ROW_PIECE)
    return {"ROWS": tall, "PIECE": ROW_PIECE, "BLOCK": block}, pieces, triton.cdiv(rows, tall) * pieces


def row_stats(x, target, temperature):
    """Maximum and sum of target and input, and the divergence, of each row."""
    M, V = x.shape
    new = lambda *shape: torch.empty(shape, dtype=torch.float32, device=x.device)  # noqa: E731
    tile, pieces, programs = tiling(M, V)
    blocks = triton.cdiv(M, 4)
    parts, stats, sums = new(M * pieces, 5), new(M, 5), new(blocks)
    if programs:
        _temper[(programs,)](
            x, target, parts, M, V, pieces, float(temperature), *x.stride(), *target.stride(), **tile, LOG_TARGET=True
        )
        _join[(blocks,)](parts, stats, sums, M, pieces, ROWS=4, PIECES=triton.next_power_of_2(pieces), num_warps=1)
    return stats


CHUNK = 128
NARROWEST = 512
PIECE = 32768


@triton.jit
def _gradient(x_ptr, t_ptr, stat_ptr, up_ptr, M, width, pieces, temperature, su, ROWS: tl.constexpr, PIECE: tl.constexpr,
              BLOCK: tl.constexpr):  # fmt: skip
    """Gradient of ``ROWS`` rows of the input's logits, ``(q - p) / temperature`` times each row's own, in their place."""
    program = tl.program_id(0).to(tl.int64)
    row = program // pieces * ROWS + tl.arange(0, ROWS)
    first, at = program % pieces * PIECE, stat_ptr + row * 5
    t_top, t_sum = tl.load(at, mask=row < M, other=0.0), tl.load(at + 1, mask=row < M, other=1.0)
    x_top, x_sum = tl.load(at + 2, mask=row < M, other=0.0), tl.load(at + 3, mask=row < M, other=1.0)
    up = tl.load(up_ptr + row * su, mask=row < M, other=0.0).to(tl.float32) / temperature
    last, base = tl.minimum(first + PIECE, width), (row * width)[:, None]
    for start in range(first, last, BLOCK):
        cols = (start + tl.arange(0, BLOCK)).to(tl.int64)[None, :]
        inside = (row < M)[:, None] & (cols < last)
        x = tl.load(x_ptr + base + cols, mask=inside, other=0.0).to(tl.float32) / temperature
        t = tl.load(t_ptr + base + cols, mask=inside, other=0.0).to(tl.float32) / temperature
        q = tl.exp(x - x_top[:, None]) / x_sum[:, None]
        p = tl.exp(t - t_top[:, None]) / t_sum[:, None]
        tl.store(x_ptr + base + cols, (q - p) * up[:, None], mask=inside)


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


def gradient(x, t, stats, up, temperature):
    """The gradient of the logits ``x``, written over them; ``up``: one incoming gradient a row."""
    M, width = x.shape
    block = min(triton.next_power_of_2(max(width, 1)), 2048)
    tall, pieces = max(1, min(64, 2048 // block)), triton.cdiv(width, PIECE)
    if M:
        _gradient[(triton.cdiv(M, tall) * pieces,)](
            x, t, stats, up, M, width, pieces, float(temperature), up.stride(0), ROWS=tall, PIECE=PIECE, BLOCK=block
        )
    return x


def losses_of(x, t, temperature):
    """Divergence of each row; and maximum and sum of target and input, which its gradient needs."""
    stats = row_stats(x, t, temperature)
    return stats[:, 4], stats


def forward(x, weight, teacher, teacher_weight, temperature, reduction, want_x):
    """Loss (float32), ``stats`` (rows, 5) for backward, and with a reduction the gradient of the input if it is wanted."""
    new = lambda *shape: torch.empty(shape, dtype=torch.float32, device=x.device)  # noqa: E731
    M, each = x.shape[0], reduction == "none"
    losses, stats = new(M), new(M, 5)
    dx = torch.empty(x.shape if want_x and not each else (0,), dtype=x.dtype, device=x.device)
    up = torch.full((), 1.0 if narrow(x.dtype) or reduction == "sum" else 1.0 / max(M, 1), device=x.device).expand(M)

    def one(here):
        s, t = logits_of(x[here], weight), logits_of(teacher[here], teacher_weight)
        losses[here], stats[here] = losses_of(s, t, temperature)
        if dx.dim() > 1:
            torch.mm(gradient(s, t, stats[here], up[here], temperature), weight, out=dx[here])

    for here in slices(M, CHUNK):
        one(here)  # a function, so that a chunk's logits are gone before the next one's are formed
    return losses if each else losses.sum() if reduction == "sum" else losses.mean(), stats, dx


def of_input(up, x, weight, teacher, teacher_weight, stats, temperature):
    """Gradient of the input for one incoming gradient a row."""
    dx = torch.empty(x.shape, dtype=x.dtype, device=x.device)

    def one(here):
        s, t = logits_of(x[here], weight), logits_of(teacher[here], teacher_weight)
        torch.mm(gradient(s, t, stats[here], up[here], temperature), weight, out=dx[here])

    for here in slices(x.shape[0], CHUNK):
        one(here)
    return dx


def of_weight(up, after, x, weight, teacher, teacher_weight, stats, temperature):
    """Gradient of the weight, a block of classes at a time; ``after`` multiplies sums of a narrow range."""
    dw = torch.empty(weight.shape, dtype=weight.dtype, device=x.device)

    def one(here):
        s, t = logits_of(x, weight[here]), logits_of(teacher, teacher_weight[here])
        g = gradient(s, t, stats, up, temperature)
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


def backward(upstream, x, weight, teacher, teacher_weight, stats, dx, temperature, reduction, wanted):
    """Gradients of input and weight, those that are ``wanted``; ``upstream``: a scalar, or one a row."""
    M, each = x.shape[0], reduction == "none"
    one = torch.ones((), dtype=torch.float32, device=x.device)
    whole = one if each else upstream / (1 if reduction == "sum" else max(M, 1))
    early = each or not narrow(x.dtype)
    given = (x, weight, teacher, teacher_weight, stats, temperature)
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


def kernel(x, weight, teacher, teacher_weight, temperature, reduction):
    return _LinearDivergence.apply(x, weight, teacher, teacher_weight, temperature, reduction)
