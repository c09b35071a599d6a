"""``tilewright.ops.js_divergence``."""

from __future__ import annotations

import torch

from .op import JS_DIVERGENCE

__all__ = ["js_divergence"]


def js_divergence(x: torch.Tensor, target: torch.Tensor, *, log_target: bool = False, beta: float = 0.5,
         temperature: float | None = None, reduction: str = "batchmean") -> torch.Tensor:  # fmt: skip
    """``beta KL(p, m) + (1 - beta) KL(q, m)`` with ``m = beta p + (1 - beta) q``, ``0 < beta < 1``;
    ``x`` is ``log q``. The result is float32 (float64 for float64).

    ``target`` (of the shape and dtype of ``x``): ``p``, or ``log p`` with ``log_target``. ``temperature``: both are taken as
    logits over it and normalised along the last dim first (no factor of ``temperature ** 2``); None: they are taken as they
    are. ``reduction``: ``batchmean`` (over the first dim), ``mean`` (over all elements), ``sum``, ``none``.
    Where a distribution gives probability 0 it adds nothing.
    Gradients of both. Raises ArgumentError.
    """
    loss: torch.Tensor = JS_DIVERGENCE(x, target, log_target, beta, temperature, reduction)
    return loss
