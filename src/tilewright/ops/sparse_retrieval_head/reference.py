"""The head of a sparse retriever in PyTorch, in float32 or wider."""

from __future__ import annotations

import torch


def sparse_retrieval_head(x, weight, bias=None, mask=None):
    """``log(1 + max(0, best))``, ``best`` being the largest logit of a word over the positions of a sequence.

    ``x`` (sequences, positions, features), ``weight`` (words, features), ``bias`` (words), ``mask`` (sequences, positions).
    """
    wide = torch.promote_types(x.dtype, torch.float32)
    with torch.autocast(x.device.type, enabled=False):
        logits = torch.nn.functional.linear(x.to(wide), weight.to(wide), None if bias is None else bias.to(wide))
    if mask is not None:
        logits = logits.masked_fill(~mask.unsqueeze(-1), -float("inf"))
    if not logits.shape[1]:
        logits = torch.cat([logits, logits.new_full((logits.shape[0], 1, logits.shape[2]), -float("inf"))], 1)
    return torch.log1p(torch.relu(logits.max(1).values))
