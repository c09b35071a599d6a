"""``tilewright.ops.rms_norm`` and ``tilewright.ops.rms_norm_residual``."""

from __future__ import annotations

import torch

from .op import RMS_NORM, RMS_NORM_RESIDUAL

__all__ = ["rms_norm", "rms_norm_residual"]


def rms_norm(x: torch.Tensor, weight: torch.Tensor | None = None, *, eps: float = 1e-6,
             offset: float = 0.0) -> torch.Tensor:  # fmt: skip
    """``x / sqrt(mean(x**2) + eps) * (weight + offset)`` over the last dim, of the shape and dtype of ``x``, contiguous.

    ``weight``: (N,), of the dtype of ``x``; none: not multiplied. ``offset``: 1.0 where a model stores ``weight - 1``.
    Computed in float32 (float64 in float64) and rounded once. Raises ArgumentError.
    """
    return RMS_NORM(x, weight, eps, offset)


def rms_norm_residual(x: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor | None = None, *,
                      eps: float = 1e-6, offset: float = 0.0) -> tuple[torch.Tensor, torch.Tensor]:  # fmt: skip
    """``(rms_norm(x + residual), x + residual)``, the sum rounded to its dtype before it is normalised.

    ``residual``: of the shape and dtype of ``x``. Other arguments as ``rms_norm``.
    """
    return RMS_NORM_RESIDUAL(x, residual, weight, eps, offset)
