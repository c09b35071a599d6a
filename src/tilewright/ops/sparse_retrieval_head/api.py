"""``tilewright.ops.sparse_retrieval_head``."""

from __future__ import annotations

import torch

from .op import SPARSE_RETRIEVAL_HEAD

__all__ = ["sparse_retrieval_head"]


def sparse_retrieval_head(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None, *,
                          mask: torch.Tensor | None = None) -> torch.Tensor:  # fmt: skip
    """Weights of words for sparse retrieval (SPLADE): ``max over positions of log(1 + relu(x @ weight.T + bias))``.

    ``x`` (sequences, positions, features), ``weight`` (words, features) and ``bias`` (words) of its dtype; ``mask`` bool
    (sequences, positions), True is a token. The result is (sequences, words), float32 (float64 for float64); a sequence
    without a token is all 0. No logits of all positions are in memory. Gradients of ``x``, ``weight`` and ``bias`` through
    the position of the largest logit alone, the first of equal ones. Raises ArgumentError.
    """
    wanted = torch.is_grad_enabled() and any(t is not None and t.requires_grad for t in (x, weight, bias))
    y: torch.Tensor = SPARSE_RETRIEVAL_HEAD(x, weight, bias, mask, wanted)
    return y
