"""``tilewright.ops.kl_divergence``."""

from __future__ import annotations

import torch

from .op import KL_DIVERGENCE

__all__ = ["kl_divergence"]


def kl_divergence(x: torch.Tensor, target: torch.Tensor, *, log_target: bool = False,
         temperature: float | None = None, reduction: str = "batchmean") -> torch.Tensor:  # fmt: skip
    """``sum p (log p - log q)``, as ``torch.nn.functional.kl_div``; ``x`` is ``log q``; float32 (float64 for float64).

    ``target`` (of the shape and dtype of ``x``): ``p``, or ``log p`` with ``log_target``. ``temperature``: both are taken as
    logits over it and normalised along the last dim first (no factor of ``temperature ** 2``); None: they are taken as they
    are. ``reduction``: ``batchmean`` (over the first dim), ``mean`` (over all elements), ``sum``, ``none``.
    A term whose target has probability 0 is 0, whatever ``x`` holds there.
    Gradients of both. Raises ArgumentError.
    """
    loss: torch.Tensor = KL_DIVERGENCE(x, target, log_target, temperature, reduction)
    return loss
