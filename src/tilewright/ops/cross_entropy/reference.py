"""Cross entropy in PyTorch, in float32 or wider, with every option of the operator."""

from __future__ import annotations

import torch


def cross_entropy(
    logits: torch.Tensor,
    target: torch.Tensor,
    weight: torch.Tensor | None = None,
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
    z_loss: float = 0.0,
    softcap: float = 0.0,
    reduction: str = "mean",
) -> torch.Tensor:
    """Loss of each row, or their sum or weighted mean. A row counts with the weight of its target."""
    wide = torch.promote_types(logits.dtype, torch.float32)
    x = logits.to(wide)
    if softcap:
        x = softcap * torch.tanh(x / softcap)
    live = target != ignore_index
    known = live & (target >= 0) & (target < x.shape[-1])
    at = torch.where(known, target, torch.zeros_like(target))
    each = torch.ones_like(at, dtype=wide) if weight is None else weight.to(wide)[at]
    log_p = torch.log_softmax(x, -1)
    loss = -each * log_p.gather(-1, at.unsqueeze(-1)).squeeze(-1)
    if label_smoothing:
        share = log_p if weight is None else weight.to(wide) * log_p
        loss = (1 - label_smoothing) * loss - label_smoothing / x.shape[-1] * share.sum(-1)
    if z_loss:
        loss = loss + z_loss * each * torch.logsumexp(x, -1) ** 2
    loss = torch.where(live, torch.where(known, loss, torch.full_like(loss, float("nan"))), torch.zeros_like(loss))
    if reduction == "none":
        return loss
    return loss.sum() if reduction == "sum" else loss.sum() / torch.where(known, each, torch.zeros_like(each)).sum()
