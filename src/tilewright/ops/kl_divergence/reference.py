"""KL divergence in PyTorch, in float32 or wider."""

from __future__ import annotations

import torch


def kl_divergence(
    x: torch.Tensor,
    target: torch.Tensor,
    log_target: bool = False,
    temperature: float | None = None,
    reduction: str = "batchmean",
) -> torch.Tensor:
    """``p (log p - log q)`` of each element, or their sum or a mean; a term whose target has probability 0 is 0."""
    wide = torch.promote_types(x.dtype, torch.float32)
    x, target = x.to(wide), target.to(wide)
    zero = torch.zeros_like(target)
    none = torch.zeros_like(target, dtype=torch.bool) if log_target else target == 0
    t = target if log_target else torch.where(none, -float("inf"), torch.log(torch.where(none, 1.0, target)))
    if temperature is not None:
        x, t = torch.log_softmax(x / temperature, -1), torch.log_softmax(t / temperature, -1)
    p = torch.exp(t) if log_target or temperature is not None else target
    none = p == 0
    terms = torch.where(none, zero, p * torch.where(none, zero, t - x))
    if reduction == "none":
        return terms
    return terms.sum() / {"sum": 1, "mean": x.numel(), "batchmean": x.shape[0]}[reduction]
