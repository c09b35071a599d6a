"""``tilewright.ops.geglu`` and ``tilewright.ops.geglu_packed``."""

from __future__ import annotations

import torch

from .op import GEGLU, GEGLU_PACKED

__all__ = ["geglu", "geglu_packed"]


def geglu(gate: torch.Tensor, up: torch.Tensor, *, approximate: str = "none") -> torch.Tensor:
    """``gelu(gate) * up``, of shape and dtype of ``gate``, contiguous.

    ``approximate``: ``"none"`` by the error function, ``"tanh"`` by its usual approximation.
    Computed in float32 (float64 in float64) and rounded once. The halves of a packed tensor may be views of it. Raises
    ArgumentError.
    """
    return GEGLU(gate, up, approximate)


def geglu_packed(x: torch.Tensor, *, approximate: str = "none") -> torch.Tensor:
    """``geglu`` of the two halves of the last dim of ``x``: gate first. The gradient comes packed as well."""
    return GEGLU_PACKED(x, approximate)
