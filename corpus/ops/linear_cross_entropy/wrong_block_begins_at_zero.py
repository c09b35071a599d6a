"""Each block of classes looks for the target as if it were the first: right where all classes fit one block."""

import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice

LOWEST = tl.constexpr(-3.4028234663852886e38)


@triton.jit
def _capped(x, cap, CAP: tl.constexpr):
    return cap * libdevice.tanh(x / cap) if CAP else x


@triton.jit
def _at(row, length, s_batch, s_row):
    """Where a row begins: rows of a (batch, length, classes) tensor need not lie evenly in memory."""
    return row // length * s_batch + row % length * s_row


@triton.jit
def _walk(x_ptr, w_ptr, base, live, first, last, sxv, sw, cap, ROWS: tl.constexpr, UNROLL: tl.constexpr,
          BLOCK: tl.constexpr, WEIGHT: tl.constexpr, SMOOTH: tl.constexpr, CAP: tl.constexpr):  # fmt: skip
    """Maximum, sum of exponentials, sum of ``w * (x - maximum)`` over the classes from ``first`` to ``last``."""
    steps = (tl.arange(0, UNROLL)[:, None] * BLOCK + tl.arange(0, BLOCK)[None, :]).to(tl.int64)[None, :, :]
    top = tl.full((ROWS, BLOCK), LOWEST, tl.float32)
    total = tl.zeros((ROWS, BLOCK), tl.float32)
    plain = tl.zeros((ROWS, BLOCK), tl.float32)
    seen = tl.zeros((ROWS, BLOCK), tl.float32)
    for start in range(first, last, BLOCK * UNROLL):
        cols = start + steps
        inside = live[:, None, None] & (cols < last)
        x = tl.load(x_ptr + base[:, None, None] + cols * sxv, mask=inside, other=0.0).to(tl.float32)
        x = tl.where(inside, _capped(x, cap, CAP), -float("inf"))
        high = tl.maximum(top, tl.max(x, axis=1))
        total = total * tl.exp(top - high) + tl.sum(tl.exp(x - high[:, None, :]), axis=1)
        if SMOOTH:
            weight = tl.where(inside, 1.0, 0.0)
            if WEIGHT:
                weight = tl.load(w_ptr + cols * sw, mask=inside, other=0.0).to(tl.float32)
            # A lane that has seen nothing has no maximum to move away from.
            moved = tl.where(seen == 0.0, 0.0, seen * (top - high))
            plain += moved + tl.sum(tl.where(inside, weight * (x - high[:, None, :]), 0.0), axis=1)
            seen += tl.sum(weight, axis=1)
        top = high
    highest = tl.max(top, axis=1)
    if SMOOTH:
        plain += tl.where(seen == 0.0, 0.0, seen * (top - highest[:, None]))
    total = tl.sum(total * tl.exp(top - highest[:, None]), axis=1)
    return highest, total, tl.sum(plain, axis=1), tl.sum(seen, axis=1)


@triton.jit
def _settle(x_ptr, target_ptr, w_ptr, loss_ptr, stat_ptr, sum_ptr, block, row, top, total, plain, seen, M, length, V,
            ignore, smooth, z, cap, sxb, sxm, sxv, stb, st, sw, WEIGHT: tl.constexpr, SMOOTH: tl.constexpr, Z: tl.constexpr,
            CAP: tl.constexpr, EACH: tl.constexpr):  # fmt: skip
    """Loss of each row of a block; either each is stored, or their sum and the sum of their weights."""
    target = tl.load(target_ptr + _at(row, length, stb, st), mask=row < M, other=0).to(tl.int64)
    live = (row < M) & (target != ignore)
    known = live & (target >= 0) & (target < V)
    picked = tl.load(x_ptr + _at(row, length, sxb, sxm) + target * sxv, mask=known, other=0.0).to(tl.float32)
    weight = tl.where(known, 1.0, 0.0)
    if WEIGHT:
        weight = tl.load(w_ptr + target * sw, mask=known, other=0.0).to(tl.float32)
    log_total = tl.log(total)
    loss = weight * (log_total - (_capped(picked, cap, CAP) - top))
    if SMOOTH:
        loss = (1.0 - smooth) * loss + smooth / V * (seen * log_total - plain)
    if Z:
        lse = top + log_total
        loss += z * weight * lse * lse
    # A class that doesn't exist gives NaN, loudly; nothing is read for it.
    loss = tl.where(known, loss, tl.where(live, float("nan"), 0.0))
    tl.store(stat_ptr + row * 2, top, mask=row < M)
    tl.store(stat_ptr + row * 2 + 1, total, mask=row < M)
    if EACH:
        tl.store(loss_ptr + row, loss, mask=row < M)
    else:
        tl.store(sum_ptr + block * 2, tl.sum(loss, axis=0))
        tl.store(sum_ptr + block * 2 + 1, tl.sum(weight, axis=0))


@triton.jit
def _rows(x_ptr, target_ptr, w_ptr, loss_ptr, stat_ptr, sum_ptr, M, length, V, ignore, smooth, z, cap, sxb, sxm, sxv,
          stb, st, sw, ROWS: tl.constexpr, UNROLL: tl.constexpr, BLOCK: tl.constexpr, WEIGHT: tl.constexpr,
          SMOOTH: tl.constexpr, Z: tl.constexpr, CAP: tl.constexpr, EACH: tl.constexpr):  # fmt: skip
    """Losses of ``ROWS`` whole rows."""
    block = tl.program_id(0).to(tl.int64)
    row = block * ROWS + tl.arange(0, ROWS)
    top, total, plain, seen = _walk(
        x_ptr, w_ptr, _at(row, length, sxb, sxm), row < M, 0, V, sxv, sw, cap, ROWS, UNROLL, BLOCK, WEIGHT, SMOOTH, CAP
    )
    _settle(
        x_ptr, target_ptr, w_ptr, loss_ptr, stat_ptr, sum_ptr, block, row, top, total, plain, seen, M, length, V,
        ignore, smooth, z, cap, sxb, sxm, sxv, stb, st, sw, WEIGHT, SMOOTH, Z, CAP, EACH,
    )  # fmt: skip


@triton.jit
def _pieces(x_ptr, w_ptr, part_ptr, length, V, pieces, cap, sxb, sxm, sxv, sw, PIECE: tl.constexpr, UNROLL: tl.constexpr,
            BLOCK: tl.constexpr, WEIGHT: tl.constexpr, SMOOTH: tl.constexpr, CAP: tl.constexpr):  # fmt: skip
    """Maximum and sums of one piece of one row."""
    program = tl.program_id(0).to(tl.int64)
    row, first = program // pieces, program % pieces * PIECE
    one = tl.zeros((1,), tl.int64)
    top, total, plain, seen = _walk(
        x_ptr, w_ptr, _at(row, length, sxb, sxm) + one, one == 0, first, tl.minimum(first + PIECE, V), sxv, sw, cap,
        1, UNROLL, BLOCK, WEIGHT, SMOOTH, CAP,
    )  # fmt: skip
    at = part_ptr + program * 4 + one
    tl.store(at, top)
    tl.store(at + 1, total)
    if SMOOTH:
        tl.store(at + 2, plain)
        tl.store(at + 3, seen)


@triton.jit
def _join(part_ptr, x_ptr, target_ptr, w_ptr, loss_ptr, stat_ptr, sum_ptr, M, length, V, pieces, ignore, smooth, z, cap,
          sxb, sxm, sxv, stb, st, sw, ROWS: tl.constexpr, PIECES: tl.constexpr, WEIGHT: tl.constexpr, SMOOTH: tl.constexpr,
          Z: tl.constexpr, CAP: tl.constexpr, EACH: tl.constexpr):  # fmt: skip
    """Losses of ``ROWS`` rows from what their pieces gave."""
    block = tl.program_id(0).to(tl.int64)
    row = block * ROWS + tl.arange(0, ROWS)
    piece = tl.arange(0, PIECES)[None, :]
    inside = (row < M)[:, None] & (piece < pieces)
    at = part_ptr + (row[:, None] * pieces + piece) * 4
    tops = tl.load(at, mask=inside, other=LOWEST)
    top = tl.max(tops, axis=1)
    shift = tl.exp(tops - top[:, None])
    total = tl.sum(tl.load(at + 1, mask=inside, other=0.0) * shift, axis=1)
    plain, seen = tl.zeros((ROWS,), tl.float32), tl.zeros((ROWS,), tl.float32)
    if SMOOTH:
        parts = tl.load(at + 3, mask=inside, other=0.0)
        moved = tl.where(parts == 0.0, 0.0, parts * (tops - top[:, None]))
        plain = tl.sum(tl.load(at + 2, mask=inside, other=0.0) + moved, axis=1)
        seen = tl.sum(parts, axis=1)
    _settle(
        x_ptr, target_ptr, w_ptr, loss_ptr, stat_ptr, sum_ptr, block, row, top, total, plain, seen, M, length, V,
        ignore, smooth, z, cap, sxb, sxm, sxv, stb, st, sw, WEIGHT, SMOOTH, Z, CAP, EACH,
    )  # fmt: skip


@triton.jit
def _add_up(sum_ptr, loss_ptr, weight_ptr, blocks, BLOCK: tl.constexpr, MEAN: tl.constexpr):
    """The sum (or weighted mean) of all losses, and the sum of their weights; one program, in one order."""
    lanes = tl.arange(0, BLOCK)
    loss = tl.zeros((BLOCK,), tl.float32)
    weight = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, blocks, BLOCK):
        at = (start + lanes).to(tl.int64)
        loss += tl.load(sum_ptr + at * 2, mask=at < blocks, other=0.0)
        weight += tl.load(sum_ptr + at * 2 + 1, mask=at < blocks, other=0.0)
    losses, weights = tl.sum(loss, axis=0), tl.sum(weight, axis=0)
    tl.store(loss_ptr, losses / weights if MEAN else losses)
    tl.store(weight_ptr, weights)


PIECE = 32768
REDUCTIONS = ("none", "mean", "sum")


def tiling(classes: int) -> dict[str, int]:
    """Rows, unrolling and lanes of a tile, by the number of classes alone."""
    block = min(triton.next_power_of_2(classes), 2048)
    unroll = min(triton.next_power_of_2(triton.cdiv(classes, block)), 4)
    return {"ROWS": max(1, min(64, 2048 // (block * unroll))), "UNROLL": unroll, "BLOCK": block}


def rows(t, tail):
    """``t`` as (batch, length, *tail): without a copy where at most two dims lead, or where the leading ones lie evenly."""
    lead = t.dim() - tail
    return t.flatten(0, lead - 2) if lead > 1 else t[None] if lead else t[None, None]


def row_losses(logits, target, weight, ignore_index, label_smoothing, z_loss, softcap, reduction):
    """Losses (of target's shape), their sum or mean, float32; for backward ``stats`` (rows, 2) and the sum of weights."""
    x, t = rows(logits, 1), rows(target, 0)
    _, length, V = x.shape
    M = t.numel()
    each, pieces, tile = reduction == "none", triton.cdiv(V, PIECE), tiling(V)
    new = lambda *shape: torch.empty(shape, dtype=torch.float32, device=logits.device)  # noqa: E731
    losses, stats, divisor = (new(*target.shape), new(M, 2), new(0)) if each else (new(), new(M, 2), new())
    tall = tile["ROWS"] if pieces == 1 else 4
    blocks = triton.cdiv(M, tall)
    block_sums = new(0 if each else blocks, 2)
    flags = {"WEIGHT": weight is not None, "SMOOTH": label_smoothing != 0, "CAP": softcap != 0}
    w, sw = (x, 0) if weight is None else (weight, weight.stride(0))
    numbers = (ignore_index, float(label_smoothing), float(z_loss), float(softcap))
    strides = (*x.stride(), *t.stride(), sw)
    if M and pieces == 1:
        _rows[(blocks,)](
            x, t, w, losses, stats, block_sums, M, length, V, *numbers, *strides, **tile, **flags, Z=z_loss != 0,
            EACH=each, num_warps=8 if V > 1024 else 4,
        )  # fmt: skip
    elif M:
        parts = new(M * pieces, 4)
        _pieces[(M * pieces,)](
            x, w, parts, length, V, pieces, float(softcap), *x.stride(), sw, PIECE=PIECE, UNROLL=tile["UNROLL"],
            BLOCK=tile["BLOCK"], **flags, num_warps=8,
        )  # fmt: skip
        _join[(blocks,)](
            parts, x, t, w, losses, stats, block_sums, M, length, V, pieces, *numbers, *strides, ROWS=tall,
            PIECES=triton.next_power_of_2(pieces), **flags, Z=z_loss != 0, EACH=each, num_warps=1,
        )  # fmt: skip
    if not each:
        _add_up[(1,)](block_sums, losses, divisor, blocks, BLOCK=1024, MEAN=reduction == "mean")
    return losses, stats, divisor


CHUNK = 256
NARROWEST = 512


@triton.jit
def _gradient(x_ptr, target_ptr, w_ptr, every_ptr, stat_ptr, up_ptr, M, width, begin, V, pieces, ignore, smooth, z, cap, st,
              sw, su, ROWS: tl.constexpr, PIECE: tl.constexpr, BLOCK: tl.constexpr, WEIGHT: tl.constexpr,
              SMOOTH: tl.constexpr, Z: tl.constexpr, CAP: tl.constexpr):  # fmt: skip
    """Gradient of ``ROWS`` rows of the logits of classes from ``begin``, in their place; ignored rows are not read."""
    program = tl.program_id(0).to(tl.int64)
    row = program // pieces * ROWS + tl.arange(0, ROWS)
    first = program % pieces * PIECE
    target = tl.load(target_ptr + row * st, mask=row < M, other=0).to(tl.int64)
    live = (row < M) & (target != ignore)
    known = live & (target >= 0) & (target < V)
    top = tl.load(stat_ptr + row * 2, mask=known, other=0.0)
    total = tl.load(stat_ptr + row * 2 + 1, mask=known, other=1.0)
    scale = tl.load(up_ptr + row * su, mask=live, other=0.0).to(tl.float32)
    scale = tl.where(known, scale, tl.where(live, float("nan"), 0.0))
    weight = tl.where(known, 1.0, 0.0)
    if WEIGHT:
        weight = tl.load(w_ptr + target * sw, mask=known, other=0.0).to(tl.float32)
    hit = weight * (1.0 - smooth) if SMOOTH else weight
    pull = hit
    if SMOOTH:
        pull += smooth / V * (tl.load(every_ptr) if WEIGHT else V)
    if Z:
        pull += 2.0 * z * weight * (top + tl.log(total))
    pull = pull / total
    last, base = tl.minimum(first + PIECE, width), (row * width)[:, None]
    for start in range(first, last, BLOCK):
        cols = (start + tl.arange(0, BLOCK)).to(tl.int64)[None, :]
        x = tl.load(x_ptr + base + cols, mask=known[:, None] & (cols < last), other=0.0).to(tl.float32)
        if CAP:
            x = cap * libdevice.tanh(x / cap)
        grad = tl.exp(x - top[:, None]) * pull[:, None]
        if SMOOTH:
            each = 1.0
            if WEIGHT:
                each = tl.load(w_ptr + (begin + cols) * sw, mask=cols < last, other=0.0).to(tl.float32)
            grad -= smooth / V * each
        grad = tl.where(cols == target[:, None], grad - hit[:, None], grad)
        if CAP:
            grad *= 1.0 - (x / cap) * (x / cap)
        grad = tl.where(live[:, None], grad * scale[:, None], 0.0)
        tl.store(x_ptr + base + cols, grad, mask=(row < M)[:, None] & (cols < last))


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


def logits_of(x, weight, bias):
    """Logits in the dtype of ``x``, as a linear layer gives them."""
    return torch.nn.functional.linear(x, weight, bias)


def divisors_of(target, class_weight, ignore_index, reduction):
    """By what the sum of the losses and the sum of the gradients is divided. Where every row is ignored the loss is 0 / 0,
    and the gradient 0."""
    one = torch.ones((), dtype=torch.float32, device=target.device)
    if reduction != "mean":
        return one, one
    live = target != ignore_index
    if class_weight is None:
        total = live.sum().float()
    else:
        known = live & (target >= 0) & (target < class_weight.shape[0])
        at = torch.where(known, target, torch.zeros_like(target))
        total = torch.where(known, class_weight.float()[at], 0.0 * one).sum()
    return total, torch.where(live.any(), total, one)


def slices(count, size):
    """Slices of at most ``size`` of ``count``."""
    return [slice(i, min(i + size, count)) for i in range(0, count, size)]


def width_of(count, classes):
    """Classes of a block: its logits take the room of ``CHUNK`` rows, unless so many rows would make it a sliver."""
    return max(CHUNK * classes // max(count, 1) // 8 * 8, NARROWEST)


def gradient(logits, target, class_weight, stats, up, begin, classes, ignore_index, label_smoothing, z_loss, softcap):
    """The gradient of ``logits``, of classes from ``begin``, written over them; ``up``: one incoming gradient a row."""
    M, width = logits.shape
    block = min(triton.next_power_of_2(max(width, 1)), 4096)
    tall, pieces, smooth = max(1, min(64, 2048 // block)), triton.cdiv(width, PIECE), label_smoothing != 0
    w, sw = (logits, 0) if class_weight is None else (class_weight, class_weight.stride(0))
    every = class_weight.sum(dtype=torch.float32) if smooth and class_weight is not None else stats
    if M:
        _gradient[(triton.cdiv(M, tall) * pieces,)](
            logits, target, w, every, stats, up, M, width, begin, classes, pieces, ignore_index, float(label_smoothing),
            float(z_loss), float(softcap), target.stride(0), sw, up.stride(0), ROWS=tall, PIECE=PIECE, BLOCK=block,
            WEIGHT=class_weight is not None, SMOOTH=smooth, Z=z_loss != 0, CAP=softcap != 0,
            num_warps=8 if width > 1024 else 4,
        )  # fmt: skip
    return logits


def narrow(dtype):
    """Whether gradients are scaled after their sums: divided by the number of rows first, float16 would lose them."""
    return dtype == torch.float16


def forward(x, weight, target, bias, class_weight, ignore_index, label_smoothing, z_loss, softcap, reduction, want_x):
    """Loss (float32), ``stats`` (rows, 2) for backward, and with a reduction the gradient of the input if it is wanted."""
    numbers = (ignore_index, label_smoothing, z_loss, softcap)
    new = lambda *shape: torch.empty(shape, dtype=torch.float32, device=x.device)  # noqa: E731
    losses, stats = new(x.shape[0]), new(x.shape[0], 2)
    divisor, share = divisors_of(target, class_weight, ignore_index, reduction)
    dx = torch.empty(x.shape if want_x and reduction != "none" else (0,), dtype=x.dtype, device=x.device)
    up = (torch.ones_like(share) if narrow(x.dtype) else 1.0 / share).expand(x.shape[0])

    def one(here):
        logits = logits_of(x[here], weight, bias)
        losses[here], stats[here], _ = row_losses(logits, target[here], class_weight, *numbers, "none")
        if dx.dim() > 1:
            g = gradient(logits, target[here], class_weight, stats[here], up[here], 0, weight.shape[0], *numbers)
            torch.mm(g, weight, out=dx[here])

    for here in slices(x.shape[0], CHUNK):
        one(here)  # a function, so that a chunk's logits are gone before the next one's are formed
    return losses if reduction == "none" else losses.sum() / divisor, stats, dx


def of_input(up, x, weight, target, bias, class_weight, stats, *numbers):
    """Gradient of the input for one incoming gradient a row."""
    dx = torch.empty(x.shape, dtype=x.dtype, device=x.device)

    def one(here):
        logits = logits_of(x[here], weight, bias)
        g = gradient(logits, target[here], class_weight, stats[here], up[here], 0, weight.shape[0], *numbers)
        torch.mm(g, weight, out=dx[here])

    for here in slices(x.shape[0], CHUNK):
        one(here)
    return dx


def of_classes(up, after, x, weight, target, bias, class_weight, stats, *numbers, wanted):
    """Gradients of weight and bias, a block of classes at a time; ``after`` multiplies their sums."""
    V = weight.shape[0]
    dw = torch.empty(weight.shape if wanted[0] else (0,), dtype=weight.dtype, device=x.device)
    db = torch.empty((V,) if wanted[1] else (0,), dtype=weight.dtype, device=x.device)

    def one(here):
        part = None if bias is None else bias[here]
        g = gradient(logits_of(x, weight[here], part), target, class_weight, stats, up, here.start, V, *numbers)
        if wanted[0] and narrow(x.dtype):
            dw[here] = summed(g, x) * after
        elif wanted[0]:
            torch.mm(g.t(), x, out=dw[here])
        if wanted[1]:
            db[here] = g.sum(0, dtype=torch.float32) * after

    for here in slices(V, width_of(x.shape[0], V)):
        one(here)
    return dw, db


def summed(g, x):
    """``g.t() @ x`` in float32 for tensors of a narrow range, some rows at a time."""
    total = torch.zeros((g.shape[1], x.shape[1]), dtype=torch.float32, device=x.device)
    for here in slices(x.shape[0], CHUNK):
        total += g[here].t() @ x[here]
    return total


def backward(upstream, x, weight, target, bias, class_weight, stats, dx, ignore_index, label_smoothing, z_loss, softcap,
             reduction, wanted):  # fmt: skip
    """Gradients of input, weight and bias, those that are ``wanted``; ``upstream``: a scalar, or one a row."""
    each, numbers = reduction == "none", (ignore_index, label_smoothing, z_loss, softcap)
    given = (x, weight, target, bias, class_weight, stats, *numbers)
    one = torch.ones((), dtype=torch.float32, device=x.device)
    whole = one if each else upstream / divisors_of(target, class_weight, ignore_index, reduction)[1]
    early = each or not narrow(x.dtype)
    up = upstream if each else (whole if early else one).expand(x.shape[0])
    dw, db = None, None
    if wanted[1] or wanted[2]:
        dw, db = of_classes(up, one if early else whole, *given, wanted=wanted[1:])
    if wanted[0] and dx.dim() > 1:
        dx = times(dx, upstream if early else whole)
    elif wanted[0]:
        dx = of_input(up if each or early else whole.expand(x.shape[0]), *given)
    return tuple(g if w else None for g, w in zip((dx, dw, db), wanted, strict=True))


class _LinearCrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, target, bias, class_weight, *options):
        loss, stats, dx = forward(*[x, weight, target, bias, class_weight, *options, ctx.needs_input_grad[0]])
        ctx.save_for_backward(x, weight, target, bias, class_weight, stats, dx)
        ctx.options = options
        return loss

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, upstream):
        wanted = [ctx.needs_input_grad[i] for i in (0, 1, 3)]
        dx, dw, db = backward(*[upstream, *ctx.saved_tensors, *ctx.options, wanted])
        return dx, dw, None, db, *[None] * (1 + len(ctx.options))


def kernel(x, weight, target, bias, ignore_index, label_smoothing, z_loss, softcap, reduction):
    return _LinearCrossEntropy.apply(
        x, weight, target, bias, None, ignore_index, label_smoothing, z_loss, softcap, reduction
    )
