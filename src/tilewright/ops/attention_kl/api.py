"""``tilewright.ops.attention_kl``."""

from __future__ import annotations

import torch

from .op import ATTENTION_KL

__all__ = ["attention_kl"]


def attention_kl(teacher_q: torch.Tensor, teacher_k: torch.Tensor, q: torch.Tensor, k: torch.Tensor, *,
                 key_mask: torch.Tensor | None = None, query_mask: torch.Tensor | None = None,
                 teacher_scale: float | None = None, scale: float | None = None, causal: bool = False,
                 divergence: str = "forward", reduction: str = "mean") -> torch.Tensor:  # fmt: skip
    """Divergence of a teacher's attention ``P = softmax(scale q·k)`` from a student's ``Q``, of each query; float32.

    ``q`` and ``teacher_q`` (batch, heads, queries, head dim), ``k`` and ``teacher_k`` (batch, key heads, keys, head dim),
    all of one dtype. Teacher and student may differ in head dim and in key heads, which divide the heads (grouped queries).
    ``scale``, ``teacher_scale``: None is one over the root of the head dim. ``causal``: query ``i`` of N sees keys up to
    ``i + M - N`` of M. ``key_mask`` bool (batch, keys), ``query_mask`` bool (batch, queries): True is a token; a query
    that is masked or sees no key gives 0.

    ``divergence``: ``forward`` KL(P‖Q), ``reverse`` KL(Q‖P), ``js`` (Jensen–Shannon, to the mixture of halves).
    ``reduction``: ``mean`` over heads and the queries that are not masked, ``sum``, ``none`` (batch, heads, queries).
    Neither attention matrix is in memory, forward or backward. Gradients of all four. Raises ArgumentError.
    """
    options = (teacher_scale, scale, causal, divergence, reduction)
    loss: torch.Tensor = ATTENTION_KL(teacher_q, teacher_k, q, k, key_mask, query_mask, *options)
    return loss
