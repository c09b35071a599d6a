"""``tilewright.ops.softmax`` and ``tilewright.ops.log_softmax``."""

from __future__ import annotations

import torch

from .op import LOG_SOFTMAX, SOFTMAX

__all__ = ["log_softmax", "softmax"]


def softmax(x: torch.Tensor, *, axis: int = -1, mask: torch.Tensor | None = None, scale: float = 1.0,
            causal: bool = False) -> torch.Tensor:  # fmt: skip
    """``softmax(scale * x)`` along ``axis``, of the shape and dtype of ``x``, contiguous.

    ``mask``: bool, broadcasts to ``x``; False takes no part, whatever ``x`` holds there, and gives 0. A row in which nothing
    takes part is all 0. ``causal``: row ``i`` of the last two dims (M, N) takes in columns up to ``i + N - M``.
    Raises ArgumentError.
    """
    return SOFTMAX(x, mask, axis, scale, causal)


def log_softmax(x: torch.Tensor, *, axis: int = -1, mask: torch.Tensor | None = None, scale: float = 1.0,
                causal: bool = False) -> torch.Tensor:  # fmt: skip
    """``log(softmax(scale * x))`` along ``axis``; what takes no part gives -inf. Arguments as ``softmax``."""
    return LOG_SOFTMAX(x, mask, axis, scale, causal)
