"""``tilewright.ops.rope`` and ``tilewright.ops.rope_``."""

from __future__ import annotations

import torch

from .op import ROPE, ROPE_

__all__ = ["rope", "rope_"]


def rope(q: torch.Tensor, k: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, *,
         positions: torch.Tensor | None = None, interleaved: bool = False) -> tuple[torch.Tensor, torch.Tensor]:  # fmt: skip
    """Rotary embedding of ``q`` (batch, heads, length, dims) and ``k``, whose number of heads may differ; new tensors.

    ``cos``, ``sin``: (table, half) or (batch or 1, table, half); the first ``2 * half`` dims turn, the rest is copied.
    ``positions``: int64 (batch or 1, length), the line of the table for each token; None: its place in the sequence. A
    position outside of the table gives NaN. ``interleaved``: pairs are ``(2i, 2i + 1)``, not ``(i, i + half)``. Products in
    float32. No gradient reaches ``cos`` and ``sin``. Any layout of ``q`` and ``k`` is read as it lies. Raises ArgumentError.
    """
    turned: tuple[torch.Tensor, torch.Tensor] = ROPE(q, k, cos, sin, positions, interleaved)
    return turned


def rope_(q: torch.Tensor, k: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, *,
          positions: torch.Tensor | None = None,
          interleaved: bool = False) -> tuple[torch.Tensor, torch.Tensor]:  # fmt: skip
    """As ``rope``, written over ``q`` and ``k``, which are returned; dims that don't turn are not touched. No gradients."""
    turned: tuple[torch.Tensor, torch.Tensor] = ROPE_(q, k, cos, sin, positions, interleaved)
    return turned
