"""KL divergence behind two linear layers in PyTorch, in float32 or wider."""

from __future__ import annotations

import torch


def linear_kl_divergence(
    x: torch.Tensor,
    weight: torch.Tensor,
    teacher: torch.Tensor,
    teacher_weight: torch.Tensor,
    temperature: float = 1.0,
    reduction: str = "mean",
    want_x: bool = False,
) -> torch.Tensor:
    """``sum p (log p - log q)`` of each row, or their sum or mean. ``want_x`` says whether a kernel is to form that gradient
    beside the loss, and changes nothing here."""
    wide = torch.promote_types(x.dtype, torch.float32)
    with torch.autocast(x.device.type, enabled=False):  # logits keep the dtype of x
        s = torch.nn.functional.linear(x, weight).to(wide)
        t = torch.nn.functional.linear(teacher.detach(), teacher_weight.detach()).to(wide)
    s, t = torch.log_softmax(s / temperature, -1), torch.log_softmax(t / temperature, -1)
    p, zero = torch.exp(t), torch.zeros_like(t)
    losses = torch.where(p == 0, zero, p * torch.where(p == 0, zero, t - s)).sum(-1)
    return losses if reduction == "none" else losses.sum() if reduction == "sum" else losses.mean()
