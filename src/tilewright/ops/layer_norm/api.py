"""``tilewright.ops.layer_norm``."""

from __future__ import annotations

import torch

from .op import LAYER_NORM

__all__ = ["layer_norm"]


def layer_norm(x: torch.Tensor, weight: torch.Tensor | None = None, bias: torch.Tensor | None = None, *,
               eps: float = 1e-5) -> torch.Tensor:  # fmt: skip
    """``(x - mean) / sqrt(variance + eps) * weight + bias`` over the last dim, of shape and dtype of ``x``, contiguous.

    ``weight``, ``bias``: (N,), of the dtype of ``x``, each of them optional. Computed in float32 (float64 in float64) and
    rounded once. Raises ArgumentError.
    """
    return LAYER_NORM(x, weight, bias, eps)
