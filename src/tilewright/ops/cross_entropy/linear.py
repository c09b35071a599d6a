"""Linear layer and cross entropy, ``CHUNK`` rows of logits at a time: no more of them is ever in memory.

torch forms the logits of a chunk, the Triton kernels beside this file their losses and their gradient. With a
reduction the gradients of input, weight and bias are formed at once (after P.-L. Hsu et al., Liger Kernel, 2024), summed
over chunks in float32 and scaled in backward. With one loss a row each row has an incoming gradient of its own, so backward
forms the logits again.
"""

import torch
import triton

try:
    from . import kernel as rows
except ImportError:  # read as a file, as tilewright check does
    import kernel as rows  # type: ignore[no-redef]

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
        losses[here], stats, none = rows.forward(logits, target[here], class_weight, *options)
        if any(now):
            up = one.expand(logits.shape[0])
            g = rows.backward(up, logits, target[here], class_weight, stats, none, *options, dtype=x.dtype)
            sums.add(here, g, x, weight, share)
    return losses if reduction == "none" else losses.sum() / divisor, *sums.done(share)


def again(upstream, x, weight, target, bias, class_weight, ignore_index, label_smoothing, z_loss, softcap, wanted):
    """Gradients of input, weight and bias for one incoming gradient a row, from logits that are formed again."""
    options = (ignore_index, label_smoothing, z_loss, softcap, "none")
    sums = Gradients(x, weight, wanted)
    one = torch.ones((), dtype=torch.float32, device=x.device)
    for here in chunks(x.shape[0]):
        logits = logits_of(x[here], weight, bias)
        _, stats, none = rows.forward(logits, target[here], class_weight, *options)
        g = rows.backward(upstream[here], logits, target[here], class_weight, stats, none, *options, dtype=x.dtype)
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
            found = [upstream * g for g in (dx, dw, db)]
        likes = (given[0], given[1], given[3])
        dx, dw, db = (g.to(t.dtype) if w else None for g, t, w in zip(found, likes, ctx.wanted, strict=True))
        return dx, dw, None, db, *[None] * (1 + len(ctx.options))


def kernel(x, weight, target, bias, ignore_index, label_smoothing, z_loss, softcap, reduction):
    return _LinearCrossEntropy.apply(
        x, weight, target, bias, None, ignore_index, label_smoothing, z_loss, softcap, reduction
    )
