"""``tilewright.ops.swiglu`` and ``tilewright.ops.swiglu_packed``."""

from __future__ import annotations

import torch

from .op import SWIGLU, SWIGLU_PACKED

__all__ = ["swiglu", "swiglu_packed"]


def swiglu(gate: torch.Tensor, up: torch.Tensor) -> torch.Tensor:
    """``silu(gate) * up``, of shape and dtype of ``gate``, contiguous.

    Computed in float32 (float64 in float64) and rounded once. The halves of a packed tensor may be views of it. Raises
    ArgumentError.
    """
    return SWIGLU(gate, up)


def swiglu_packed(x: torch.Tensor) -> torch.Tensor:
    """``swiglu`` of the two halves of the last dim of ``x``: gate first. The gradient comes packed as well."""
    return SWIGLU_PACKED(x)
