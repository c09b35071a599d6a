"""``tilewright.ops.linear_js_divergence``."""

from __future__ import annotations

import torch

from .op import LINEAR_JS_DIVERGENCE

__all__ = ["linear_js_divergence"]


def linear_js_divergence(x: torch.Tensor, weight: torch.Tensor, teacher: torch.Tensor, teacher_weight: torch.Tensor, *,
                         beta: float = 0.5, temperature: float = 1.0, reduction: str = "mean") -> torch.Tensor:  # fmt: skip
    """Jensen-Shannon divergence of a student's ``q = softmax(x @ weight.T / temperature)`` from a teacher's ``p``, likewise
    of ``teacher`` and ``teacher_weight``; float32 (float64 for float64). No more than 128 rows of both logits are in
    memory.

    ``beta KL(p, m) + (1 - beta) KL(q, m)`` with ``m = beta p + (1 - beta) q``, ``0 < beta < 1``.
    ``x`` (..., features), ``weight`` (classes, features); ``teacher`` (..., its features) and ``teacher_weight`` of the same
    dtype, rows and classes. ``reduction``: ``mean`` and ``sum`` over rows, ``none`` gives each row's. No factor of
    ``temperature ** 2``. Gradients of ``x`` and ``weight``; none reaches the teacher. With a reduction the gradient of ``x``
    is formed beside the loss; that of ``weight`` in backward, summed over all rows in float32 and rounded once. Raises
    ArgumentError.
    """
    want_x = torch.is_grad_enabled() and x.requires_grad
    given = (x, weight, teacher, teacher_weight, beta, temperature, reduction, want_x)
    loss: torch.Tensor = LINEAR_JS_DIVERGENCE(*given)
    return loss
