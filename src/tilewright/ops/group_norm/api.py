"""``tilewright.ops.group_norm``."""

from __future__ import annotations

import torch

from .op import GROUP_NORM

__all__ = ["group_norm"]


def group_norm(x: torch.Tensor, groups: int, weight: torch.Tensor | None = None, bias: torch.Tensor | None = None, *,
               eps: float = 1e-5) -> torch.Tensor:  # fmt: skip
    """``(x - mean) / sqrt(variance + eps) * weight + bias``, statistics over each of ``groups`` groups of channels.

    ``x``: (N, C, ...), C a multiple of ``groups``; the result has its shape and dtype and is contiguous. ``weight``,
    ``bias``: (C,), of the dtype of ``x``, each of them optional. Computed in float32 (float64 in float64) and rounded once.
    Raises ArgumentError.
    """
    return GROUP_NORM(x, groups, weight, bias, eps)
