"""``tilewright.ops.relu_squared``."""

from __future__ import annotations

import torch

from .op import RELU_SQUARED

__all__ = ["relu_squared"]


def relu_squared(x: torch.Tensor) -> torch.Tensor:
    """``relu(x)**2``, of shape and dtype of ``x``, contiguous; NaN stays NaN. Raises ArgumentError."""
    return RELU_SQUARED(x)
