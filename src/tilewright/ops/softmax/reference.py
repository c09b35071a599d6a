"""Softmax and log-softmax as one writes them in PyTorch, in any float dtype."""

import torch


def parts(x, mask=None, causal=False):
    """Which elements take part: none is masked where the result is None."""
    live = mask
    if causal:
        rows, cols = x.shape[-2], x.shape[-1]
        below = torch.ones(rows, cols, dtype=torch.bool, device=x.device).tril(cols - rows)
        live = below if live is None else live & below
    return None if live is None else live.expand(x.shape)


def _rows(function, gone, x, mask, axis, scale, causal):
    scaled, live = x * scale, parts(x, mask, causal)
    if live is None:
        return function(scaled, axis)
    some = live.any(axis, keepdim=True)
    kept = torch.where(some, scaled.masked_fill(~live, float("-inf")), torch.zeros_like(scaled))
    return torch.where(live, function(kept, axis), torch.full_like(scaled, gone))


def softmax(x, mask=None, axis=-1, scale=1.0, causal=False):
    return _rows(torch.softmax, 0.0, x, mask, axis, scale, causal)


def log_softmax(x, mask=None, axis=-1, scale=1.0, causal=False):
    return _rows(torch.log_softmax, float("-inf"), x, mask, axis, scale, causal)
