"""Jensen-Shannon divergence behind two linear layers in PyTorch, in float32 or wider."""

from __future__ import annotations

import torch


def linear_js_divergence(
    x: torch.Tensor,
    weight: torch.Tensor,
    teacher: torch.Tensor,
    teacher_weight: torch.Tensor,
    beta: float = 0.5,
    temperature: float = 1.0,
    reduction: str = "mean",
    want_x: bool = False,
) -> torch.Tensor:
    """``beta KL(p, m) + (1 - beta) KL(q, m)`` of each row, or their sum or mean. ``want_x`` says
    whether a kernel is to form that gradient beside the loss, and changes nothing here."""
    wide = torch.promote_types(x.dtype, torch.float32)
    with torch.autocast(x.device.type, enabled=False):  # logits keep the dtype of x
        s = torch.nn.functional.linear(x, weight).to(wide)
        t = torch.nn.functional.linear(teacher.detach(), teacher_weight.detach()).to(wide)
    s, t = torch.log_softmax(s / temperature, -1), torch.log_softmax(t / temperature, -1)
    q, p, zero = torch.exp(s), torch.exp(t), torch.zeros_like(s)
    high = torch.maximum(s, t).detach()
    high = torch.where(high == -float("inf"), 0.0, high)
    m = high + torch.log(beta * torch.exp(t - high) + (1 - beta) * torch.exp(s - high))
    of_p = torch.where(p == 0, zero, p * torch.where(p == 0, zero, t - m))
    of_q = torch.where(q == 0, zero, q * torch.where(q == 0, zero, s - m))
    losses = (beta * of_p + (1 - beta) * of_q).sum(-1)
    return losses if reduction == "none" else losses.sum() if reduction == "sum" else losses.mean()
