"""``tilewright.ops.max_sim``, its packed, pair and int8 forms, and ``max_sim_top_k``."""

from __future__ import annotations

import torch

from .op import MAX_SIM, MAX_SIM_INT8, MAX_SIM_PACKED, MAX_SIM_PAIRS
from .top_k import max_sim_top_k

__all__ = ["max_sim", "max_sim_int8", "max_sim_packed", "max_sim_pairs", "max_sim_top_k"]


def _wanted(*tensors: torch.Tensor) -> bool:
    return torch.is_grad_enabled() and any(t.requires_grad for t in tensors)


def max_sim(q: torch.Tensor, d: torch.Tensor, *, q_mask: torch.Tensor | None = None,
            d_mask: torch.Tensor | None = None) -> torch.Tensor:  # fmt: skip
    """Late interaction: (queries, documents) sums over query tokens of the maximum over document tokens of ``q · d``.

    ``q`` (queries, tokens, features), ``d`` (documents, tokens, features) of its dtype; masks bool, (sequences, tokens),
    True is a token. What is masked takes no part, whatever it holds: padding never beats a negative similarity. A document
    without a token scores -inf, a query without one 0. The result is float32 (float64 for float64). Gradients of both,
    through the maximum alone, the first of equal ones. Raises ArgumentError.
    """
    scores: torch.Tensor = MAX_SIM(q, d, q_mask, d_mask, _wanted(q, d))
    return scores


def max_sim_pairs(q: torch.Tensor, d: torch.Tensor, *, q_mask: torch.Tensor | None = None,
                  d_mask: torch.Tensor | None = None) -> torch.Tensor:  # fmt: skip
    """``max_sim`` of the i-th query with the i-th document: (pairs). Arguments as there. Raises ArgumentError."""
    scores: torch.Tensor = MAX_SIM_PAIRS(q, d, q_mask, d_mask, _wanted(q, d))
    return scores


def max_sim_packed(q: torch.Tensor, d: torch.Tensor, cu_q: torch.Tensor, cu_d: torch.Tensor) -> torch.Tensor:
    """``max_sim`` of packed sequences: ``q`` and ``d`` (tokens, features), sequence ``i`` from ``cu[i]`` to ``cu[i + 1]``.

    ``cu_q``, ``cu_d``: int32 or int64, ascending from 0 to the number of tokens; they are not read on the host, and no token
    outside of ``q`` and ``d`` is read whatever they hold. Empty sequences as in ``max_sim``. Raises ArgumentError.
    """
    scores: torch.Tensor = MAX_SIM_PACKED(q, d, cu_q, cu_d, _wanted(q, d))
    return scores


def max_sim_int8(q: torch.Tensor, d: torch.Tensor, scale: torch.Tensor, *, q_mask: torch.Tensor | None = None,
                 d_mask: torch.Tensor | None = None) -> torch.Tensor:  # fmt: skip
    """``max_sim`` with ``d`` of int8 and ``scale`` (documents, tokens) of float32: token ``j`` of document ``i`` is
    ``d[i, j] * scale[i, j]``. A gradient of ``q`` alone. Raises ArgumentError."""
    scores: torch.Tensor = MAX_SIM_INT8(q, d, scale, q_mask, d_mask, _wanted(q))
    return scores
