"""Linear layer and cross entropy in PyTorch, the loss in float32 or wider."""

from __future__ import annotations

import torch


def linear_cross_entropy(
    x: torch.Tensor,
    weight: torch.Tensor,
    target: torch.Tensor,
    bias: torch.Tensor | None = None,
    class_weight: torch.Tensor | None = None,
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
    z_loss: float = 0.0,
    softcap: float = 0.0,
    reduction: str = "mean",
    want_x: bool = False,
) -> torch.Tensor:
    """Cross entropy of ``x @ weight.T + bias``: each row's, or their sum or mean by the weights of the targets. ``want_x``
    says whether a kernel is to form that gradient beside the loss, and changes nothing here."""
    wide = torch.promote_types(x.dtype, torch.float32)
    with torch.autocast(x.device.type, enabled=False):  # logits keep the dtype of x
        logits = torch.nn.functional.linear(x, weight, bias).to(wide)
    if softcap:
        logits = softcap * torch.tanh(logits / softcap)
    live = target != ignore_index
    known = live & (target >= 0) & (target < logits.shape[-1])
    at = torch.where(known, target, torch.zeros_like(target))
    each = torch.ones_like(at, dtype=wide) if class_weight is None else class_weight.to(wide)[at]
    log_p = torch.log_softmax(logits, -1)
    loss = -each * log_p.gather(-1, at.unsqueeze(-1)).squeeze(-1)
    if label_smoothing:
        share = log_p if class_weight is None else class_weight.to(wide) * log_p
        loss = (1 - label_smoothing) * loss - label_smoothing / logits.shape[-1] * share.sum(-1)
    if z_loss:
        loss = loss + z_loss * each * torch.logsumexp(logits, -1) ** 2
    loss = torch.where(live, torch.where(known, loss, torch.full_like(loss, float("nan"))), torch.zeros_like(loss))
    if reduction == "none":
        return loss
    return loss.sum() if reduction == "sum" else loss.sum() / torch.where(known, each, torch.zeros_like(each)).sum()
