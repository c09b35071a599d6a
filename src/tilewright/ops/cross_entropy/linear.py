"""Linear layer and cross entropy with no more logits in memory than ``CHUNK`` rows have.

torch forms logits, the Triton kernels beside this file the losses, the one in it the gradient, over the logits. Rows go
through ``CHUNK`` at a time: loss and, with a reduction, the gradient of the input, a product over all classes (forming it
beside the loss is after P.-L. Hsu et al., Liger Kernel, 2024). The weight's gradient is a product over all rows, so backward
forms the logits again, a block of classes at a time, from the statistics of each row: sums run in float32 within the product
and are rounded once, and no second copy of the weight's gradient is ever held. With one loss a row each row has an incoming
gradient of its own, and backward forms both.
"""

import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice

try:
    from . import kernel as rows
except ImportError:  # read as a file, as tilewright check does
    import kernel as rows  # type: ignore[no-redef]

CHUNK = 256
NARROWEST = 512
PIECE = 32768


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
        grad = tl.where(begin + cols == target[:, None], grad - hit[:, None], grad)
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
        losses[here], stats[here], _ = rows.forward(logits, target[here], class_weight, *numbers, "none")
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
