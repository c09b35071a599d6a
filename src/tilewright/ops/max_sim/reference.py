"""Late interaction in PyTorch, in float32 or wider."""

from __future__ import annotations

import torch


def wide(*tensors):
    """In the accumulating dtype: float32, or float64 where an input has it."""
    dtype = torch.float32
    for t in tensors:
        dtype = torch.promote_types(dtype, t.dtype) if t.is_floating_point() else dtype
    return [t.to(dtype) for t in tensors]


def _maximum(similar):
    """Of the last dim; of nothing it is -inf."""
    if not similar.shape[-1]:
        similar = torch.cat([similar, similar.new_full((*similar.shape[:-1], 1), -float("inf"))], -1)
    return similar.max(-1).values


def _best(similar, q_mask, d_mask):
    """Sum over query tokens (second last dim) of the maximum over document tokens (last dim)."""
    if d_mask is not None:
        similar = similar.masked_fill(~d_mask, -float("inf"))
    best = _maximum(similar)
    if q_mask is not None:
        best = torch.where(q_mask, best, torch.zeros_like(best))
    return best.sum(-1)


def _all_pairs(q, d):
    """(queries, documents, query tokens, document tokens) products."""
    with torch.autocast(q.device.type, enabled=False):
        flat = q.reshape(-1, q.shape[-1]) @ d.reshape(-1, d.shape[-1]).transpose(0, 1)
    return flat.reshape(q.shape[0], q.shape[1], d.shape[0], d.shape[1]).transpose(1, 2)


def _sides(q_mask, d_mask):
    """Masks as they broadcast to the products of all pairs."""
    return None if q_mask is None else q_mask[:, None], None if d_mask is None else d_mask[None, :, None]


def max_sim(q, d, q_mask=None, d_mask=None):
    """(queries, documents) scores of ``q`` (queries, tokens, features) with ``d`` (documents, tokens, features)."""
    return _best(_all_pairs(*wide(q, d)), *_sides(q_mask, d_mask))


def max_sim_pairs(q, d, q_mask=None, d_mask=None):
    """Scores (pairs) of each query with the document of the same index."""
    q, d = wide(q, d)
    with torch.autocast(q.device.type, enabled=False):
        similar = torch.bmm(q, d.transpose(1, 2))
    return _best(similar, q_mask, None if d_mask is None else d_mask[:, None])


def max_sim_packed(q, d, cu_q, cu_d):
    """Scores (queries, documents) of sequences that lie one after the other: ``cu[i]`` is where sequence ``i`` begins."""
    q, d = wide(q, d)
    with torch.autocast(q.device.type, enabled=False):
        similar = q @ d.transpose(0, 1)
    of_query, of_document = (_members(cu, n) for cu, n in ((cu_q, q.shape[0]), (cu_d, d.shape[0])))
    hidden = similar.unsqueeze(1).masked_fill(~of_document[None], -float("inf"))  # query tokens, documents, tokens
    best = _maximum(hidden)
    return torch.where(of_query[:, :, None], best[None], torch.zeros_like(best[None])).sum(1)


def _members(cu, count):
    """(sequences, tokens): whether a token belongs to a sequence."""
    token = torch.arange(count, device=cu.device)
    return (token >= cu[:-1, None]) & (token < cu[1:, None])


def max_sim_int8(q, d, scale, q_mask=None, d_mask=None):
    """``max_sim`` with documents of int8, each token times its ``scale``."""
    q, d, scale = wide(q, d, scale)
    return _best(_all_pairs(q, d) * scale[:, None], *_sides(q_mask, d_mask))
