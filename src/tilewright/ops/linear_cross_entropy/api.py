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
    reduction the gradient of ``x`` is formed beside the loss, if one is wanted. Backward forms the logits again, a block of
    classes at a time, so that the weight's gradient is summed over all rows in float32 and rounded once, without a float32
    copy of it. Raises ArgumentError.
    """
    want_x = torch.is_grad_enabled() and x.requires_grad
    options = (ignore_index, label_smoothing, z_loss, softcap, reduction)
    loss: torch.Tensor = LINEAR_CROSS_ENTROPY(x, weight, target, bias, class_weight, *options, want_x)
    return loss
