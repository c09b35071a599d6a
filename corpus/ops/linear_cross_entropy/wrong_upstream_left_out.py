"""Gradients formed beside the loss are handed out without the incoming gradient: right after loss.backward()."""

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


@triton.jit
def _gradient(x_ptr, target_ptr, w_ptr, every_ptr, stat_ptr, total_ptr, up_ptr, dx_ptr, M, length, V, pieces, ignore,
              smooth, z, cap, sxb, sxm, sxv, stb, st, sw, sub, su, ROWS: tl.constexpr, PIECE: tl.constexpr,
              BLOCK: tl.constexpr, WEIGHT: tl.constexpr, SMOOTH: tl.constexpr, Z: tl.constexpr, CAP: tl.constexpr,
              MEAN: tl.constexpr):  # fmt: skip
    """Gradient of a piece of ``ROWS`` rows; the logits of ignored rows are not read."""
    program = tl.program_id(0).to(tl.int64)
    row = program // pieces * ROWS + tl.arange(0, ROWS)
    first = program % pieces * PIECE
    target = tl.load(target_ptr + _at(row, length, stb, st), mask=row < M, other=0).to(tl.int64)
    live = (row < M) & (target != ignore)
    known = live & (target >= 0) & (target < V)
    top = tl.load(stat_ptr + row * 2, mask=known, other=0.0)
    total = tl.load(stat_ptr + row * 2 + 1, mask=known, other=1.0)
    scale = tl.load(up_ptr + _at(row, length, sub, su), mask=live, other=0.0).to(tl.float32)
    if MEAN:
        scale = scale / tl.load(total_ptr)
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
    last, base = tl.minimum(first + PIECE, V), _at(row, length, sxb, sxm)[:, None]
    for start in range(first, last, BLOCK):
        cols = (start + tl.arange(0, BLOCK)).to(tl.int64)[None, :]
        read = known[:, None] & (cols < last)
        raw = tl.load(x_ptr + base + cols * sxv, mask=read, other=0.0).to(tl.float32)
        x = _capped(raw, cap, CAP)
        grad = tl.exp(x - top[:, None]) * pull[:, None]
        if SMOOTH:
            each = tl.load(w_ptr + cols * sw, mask=cols < last, other=0.0).to(tl.float32) if WEIGHT else 1.0
            grad -= smooth / V * each
        grad = tl.where(cols == target[:, None], grad - hit[:, None], grad)
        if CAP:
            grad *= 1.0 - (x / cap) * (x / cap)
        grad = tl.where(live[:, None], grad * scale[:, None], 0.0)
        tl.store(dx_ptr + row[:, None] * V + cols, grad, mask=(row < M)[:, None] & (cols < last))


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


def row_gradients(upstream, logits, target, weight, stats, divisor, ignore_index, label_smoothing, z_loss, softcap, reduction,
             dtype=None):  # fmt: skip
    """Gradient of the logits, contiguous, of their dtype or ``dtype``; the logits stay as they are."""
    x, t = rows(logits, 1), rows(target, 0)
    _, length, V = x.shape
    M = t.numel()
    gradient = torch.empty(logits.shape, dtype=dtype or logits.dtype, device=logits.device)
    block = min(triton.next_power_of_2(V), 4096)
    tall, pieces = max(1, min(64, 2048 // block)), triton.cdiv(V, PIECE)
    smooth = label_smoothing != 0
    w, sw = (x, 0) if weight is None else (weight, weight.stride(0))
    every = weight.sum(dtype=torch.float32) if smooth and weight is not None else divisor
    up = rows(upstream, 0).stride() if reduction == "none" else (0, 0)
    if M:
        _gradient[(triton.cdiv(M, tall) * pieces,)](
            x, t, w, every, stats, divisor, upstream, gradient, M, length, V, pieces, ignore_index,
            float(label_smoothing), float(z_loss), float(softcap), *x.stride(), *t.stride(), sw, *up, ROWS=tall,
            PIECE=PIECE, BLOCK=block, WEIGHT=weight is not None, SMOOTH=smooth, Z=z_loss != 0, CAP=softcap != 0,
            MEAN=reduction == "mean", num_warps=8 if V > 1024 else 4,
        )  # fmt: skip
    return gradient


CHUNK = 256


def logits_of(x, weight, bias):
    """Logits of a chunk, in the dtype of ``x`` as a linear layer gives them."""
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


class Gradients:
    """Sums over chunks of those gradients that are wanted: input (by rows), weight and bias in float32."""

    def __init__(self, x, weight, wanted):
        new = lambda shape, dtype: torch.zeros(shape, dtype=dtype, device=x.device)  # noqa: E731
        self.wanted = wanted
        self.x = new(x.shape if wanted[0] else (0,), x.dtype)
        self.weight = new(weight.shape if wanted[1] else (0,), torch.float32)
        self.bias = new(weight.shape[:1] if wanted[2] else (0,), torch.float32)

    def add(self, here, g, x, weight, divisor):
        """``g``: gradient of the logits of the rows ``here``, not yet divided, so that half precision keeps its range."""
        if self.wanted[0]:
            self.x[here] = ((g @ weight).float() / divisor).to(x.dtype)
        if self.wanted[1]:
            self.weight += g.t() @ x[here]
        if self.wanted[2]:
            self.bias += g.sum(0, dtype=torch.float32)

    def done(self, divisor):
        """Gradients of input, weight and bias."""
        return self.x, self.weight / divisor, self.bias / divisor


def chunks(count):
    """Slices of at most ``CHUNK`` rows."""
    return [slice(i * CHUNK, min((i + 1) * CHUNK, count)) for i in range(triton.cdiv(count, CHUNK))]


def forward(x, weight, target, bias, class_weight, ignore_index, label_smoothing, z_loss, softcap, reduction, wanted):
    """Loss (float32), and the gradients that are ``wanted`` of input, weight and bias where they can be formed by now."""
    options = (ignore_index, label_smoothing, z_loss, softcap, "none")
    losses = torch.empty(target.shape, dtype=torch.float32, device=x.device)
    divisor, share = divisors_of(target, class_weight, ignore_index, reduction)
    now = wanted if reduction != "none" else (False, False, False)
    sums = Gradients(x, weight, now)
    one = torch.ones((), dtype=torch.float32, device=x.device)
    for here in chunks(x.shape[0]):
        logits = logits_of(x[here], weight, bias)
        losses[here], stats, none = row_losses(logits, target[here], class_weight, *options)
        if any(now):
            up = one.expand(logits.shape[0])
            g = row_gradients(up, logits, target[here], class_weight, stats, none, *options, dtype=x.dtype)
            sums.add(here, g, x, weight, share)
    return losses if reduction == "none" else losses.sum() / divisor, *sums.done(share)


def again(upstream, x, weight, target, bias, class_weight, ignore_index, label_smoothing, z_loss, softcap, wanted):
    """Gradients of input, weight and bias for one incoming gradient a row, from logits that are formed again."""
    options = (ignore_index, label_smoothing, z_loss, softcap, "none")
    sums = Gradients(x, weight, wanted)
    one = torch.ones((), dtype=torch.float32, device=x.device)
    for here in chunks(x.shape[0]):
        logits = logits_of(x[here], weight, bias)
        _, stats, none = row_losses(logits, target[here], class_weight, *options)
        g = row_gradients(upstream[here], logits, target[here], class_weight, stats, none, *options, dtype=x.dtype)
        sums.add(here, g, x, weight, one)
    return sums.done(one)


class _LinearCrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, target, bias, class_weight, *options):
        wanted = (ctx.needs_input_grad[0], ctx.needs_input_grad[1], ctx.needs_input_grad[3])
        whole = (bias, class_weight, *options, wanted)
        loss, *sums = forward(x, weight, target, *whole)
        ctx.save_for_backward(x, weight, target, bias, class_weight, *sums)
        ctx.options, ctx.wanted = options, wanted
        return loss

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, upstream):
        *given, dx, dw, db = ctx.saved_tensors
        if ctx.options[-1] == "none":
            whole = (*given, *ctx.options[:-1], ctx.wanted)
            found = again(upstream, *whole)
        else:
            found = [dx, dw, db]
        likes = (given[0], given[1], given[3])
        dx, dw, db = (g.to(t.dtype) if w else None for g, t, w in zip(found, likes, ctx.wanted, strict=True))
        return dx, dw, None, db, *[None] * (1 + len(ctx.options))


def kernel(x, weight, target, bias, ignore_index, label_smoothing, z_loss, softcap, reduction):
    return _LinearCrossEntropy.apply(
        x, weight, target, bias, None, ignore_index, label_smoothing, z_loss, softcap, reduction
    )
