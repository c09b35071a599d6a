"""``tilewright.ops.cross_entropy``."""

from __future__ import annotations

import torch

from .op import CROSS_ENTROPY

__all__ = ["cross_entropy"]


def cross_entropy(logits: torch.Tensor, target: torch.Tensor, weight: torch.Tensor | None = None, *,
                  ignore_index: int = -100, label_smoothing: float = 0.0, z_loss: float = 0.0, softcap: float = 0.0,
                  reduction: str = "mean") -> torch.Tensor:  # fmt: skip
    """Cross entropy of ``logits`` (..., classes) and int64 ``target`` (...), float32 (float64 for float64 logits).

    As ``torch.nn.functional.cross_entropy``, with the classes last. ``weight``: one for each class; no gradient reaches it.
    ``z_loss``: adds ``z_loss * weight[target] * logsumexp ** 2``. ``softcap``: logits become
    ``softcap * tanh(x / softcap)``. ``reduction``: ``mean`` (by the weights of the targets), ``sum``, ``none``.
    Rows whose target is ``ignore_index`` count nowhere, whatever they hold; a target that is no class gives NaN.
    Raises ArgumentError.
    """
    return CROSS_ENTROPY(logits, target, weight, ignore_index, label_smoothing, z_loss, softcap, reduction)
