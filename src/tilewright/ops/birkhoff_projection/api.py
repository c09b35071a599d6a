"""``tilewright.ops.birkhoff_projection``."""

from __future__ import annotations

import torch

from .op import BIRKHOFF, SINKHORN

__all__ = ["birkhoff_projection"]


def birkhoff_projection(x: torch.Tensor, *, iterations: int | None = 20) -> torch.Tensor:
    """Doubly stochastic matrices ``diag(a) exp(x) diag(b)`` for ``x`` (..., n, n), n from 2 to 8; of its shape and dtype,
    contiguous.

    ``iterations``: so many times rows, then columns are divided by their sums (Sinkhorn, 1964), and the gradient is that of
    these steps. None: the limit of that, by Newton's method on the dual, and the gradient of the solution (implicit function
    theorem); a matrix that is not finite gives NaN there. Raises ArgumentError.
    """
    found: torch.Tensor = BIRKHOFF(x) if iterations is None else SINKHORN(x, iterations)
    return found
