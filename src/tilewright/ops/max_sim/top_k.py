"""The best documents of each query, in pieces of the documents."""

from __future__ import annotations

import torch

from .._builder import arguments as a
from .op import MAX_SIM, MAX_SIM_INT8


def max_sim_top_k(q: torch.Tensor, d: torch.Tensor, k: int, *, scale: torch.Tensor | None = None,
                  q_mask: torch.Tensor | None = None, d_mask: torch.Tensor | None = None,
                  chunk: int = 4096) -> tuple[torch.Tensor, torch.Tensor]:  # fmt: skip
    """The ``k`` best documents of each query by ``max_sim``: scores and int64 numbers, both (queries, k), best first.

    ``d`` may be int8, with ``scale`` as ``max_sim_int8`` takes it. Of equal scores the document of the lower number comes
    first. ``chunk`` documents are scored at a time, so that no more than (queries, chunk + k) scores are in memory. No
    gradients: score the documents found by ``max_sim_pairs`` for those. Raises ArgumentError, also where there are fewer
    than ``k`` documents.
    """
    if not 0 < k <= d.shape[0]:
        raise a.wrong("max_sim_top_k", "k", k, f"between 1 and {d.shape[0]}, the number of documents", "a smaller k")
    if chunk < 1:
        raise a.wrong("max_sim_top_k", "chunk", chunk, "at least 1", "leave it out")
    best = torch.empty((q.shape[0], 0), dtype=torch.promote_types(q.dtype, torch.float32), device=q.device)
    at = torch.empty((q.shape[0], 0), dtype=torch.int64, device=q.device)
    with torch.no_grad():
        for first in range(0, d.shape[0], chunk):
            here = slice(first, first + chunk)
            scores = _scores(q, d[here], None if scale is None else scale[here], q_mask,
                             None if d_mask is None else d_mask[here])  # fmt: skip
            numbers = torch.arange(first, first + scores.shape[1], device=q.device).expand_as(scores)
            best, at = _first(torch.cat([best, scores], 1), torch.cat([at, numbers], 1), k)
    return best, at


def _scores(q: torch.Tensor, d: torch.Tensor, scale: torch.Tensor | None, q_mask: torch.Tensor | None,
            d_mask: torch.Tensor | None) -> torch.Tensor:  # fmt: skip
    scores: torch.Tensor
    if scale is None:
        scores = MAX_SIM(q, d, q_mask, d_mask, False)
    else:
        scores = MAX_SIM_INT8(q, d, scale, q_mask, d_mask, False)
    return scores


def _first(scores: torch.Tensor, numbers: torch.Tensor, k: int) -> tuple[torch.Tensor, torch.Tensor]:
    """The ``k`` largest of each row, the earlier of equal ones first."""
    values, order = torch.sort(scores, dim=1, descending=True, stable=True)
    return values[:, :k], numbers.gather(1, order[:, :k])
