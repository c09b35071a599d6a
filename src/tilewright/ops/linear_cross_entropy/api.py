"""``tilewright.ops.linear_cross_entropy``."""

from __future__ import annotations

import torch

from .op import LINEAR_CROSS_ENTROPY

__all__ = ["linear_cross_entropy"]


def linear_cross_entropy(x: torch.Tensor, weight: torch.Tensor, target: torch.Tensor, bias: torch.Tensor | None = None, *,
                         class_weight: torch.Tensor | None = None, ignore_index: int = -100,
                         label_smoothing: float = 0.0, z_loss: float = 0.0, softcap: float = 0.0,
                         reduction: str = "mean") -> torch.Tensor:  # fmt: skip
    """Cross entropy of ``x @ weight.T + bias``, float32, for ``x`` (..., features), ``weight`` (classes, features) and int64
    ``target`` (...), with no more than 256 rows of logits in memory.

    The options are those of ``cross_entropy``; ``class_weight`` is its ``weight``. Logits have the dtype of ``x``. With a
    reduction the gradients are formed beside the loss, where one is wanted; with ``none`` backward forms the logits again.
    Gradients of weight and bias are summed over rows in float32. Raises ArgumentError.
    """
    grad = torch.is_grad_enabled()
    wanted = [grad and t is not None and t.requires_grad for t in (x, weight, bias)]
    options = (ignore_index, label_smoothing, z_loss, softcap, reduction)
    loss: torch.Tensor = LINEAR_CROSS_ENTROPY(x, weight, target, bias, class_weight, *options, wanted)
    return loss
