"""A decoder in plain PyTorch as one writes it without a kernel library: RMS norm, rotary embedding, grouped heads, SwiGLU."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn


@dataclass(frozen=True)
class Sizes:
    """Of a model and of a batch."""

    layers: int = 4
    hidden: int = 4096
    inner: int = 14336
    heads: int = 32
    groups: int = 8
    vocabulary: int = 128256
    batch: int = 2
    length: int = 4096


TINY = Sizes(layers=2, hidden=32, inner=48, heads=4, groups=2, vocabulary=97, batch=2, length=12)


class Norm(nn.Module):
    def __init__(self, size: int, eps: float = 1e-5):
        super().__init__()
        self.gain, self.eps = nn.Parameter(torch.ones(size)), eps

    def forward(self, x):
        wide = x.float()
        return self.gain * (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + self.eps)).to(x.dtype)


def turn(q, k, cos, sin):
    """Queries and keys (batch, heads, length, dims) turned; tables (length, dims), each angle twice."""

    def half(x):
        a, b = x.chunk(2, -1)
        return torch.cat((-b, a), -1)

    return q * cos + half(q) * sin, k * cos + half(k) * sin


class Attention(nn.Module):
    def __init__(self, s: Sizes):
        super().__init__()
        self.size = s.hidden // s.heads
        self.q = nn.Linear(s.hidden, s.heads * self.size, bias=False)
        self.k, self.v = (nn.Linear(s.hidden, s.groups * self.size, bias=False) for _ in range(2))
        self.out = nn.Linear(s.hidden, s.hidden, bias=False)

    def forward(self, x, tables):
        q, k, v = (f(x).unflatten(-1, (-1, self.size)).transpose(1, 2) for f in (self.q, self.k, self.v))
        q, k = turn(q, k, *tables)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        return self.out(y.transpose(1, 2).flatten(2))


class Gated(nn.Module):
    def __init__(self, s: Sizes):
        super().__init__()
        self.a, self.b = (nn.Linear(s.hidden, s.inner, bias=False) for _ in range(2))
        self.c = nn.Linear(s.inner, s.hidden, bias=False)

    def forward(self, x):
        return self.c(F.silu(self.a(x)) * self.b(x))


class Layer(nn.Module):
    def __init__(self, s: Sizes):
        super().__init__()
        self.first, self.second = Norm(s.hidden), Norm(s.hidden)
        self.attention, self.gated = Attention(s), Gated(s)

    def forward(self, x, tables):
        x = x + self.attention(self.first(x), tables)
        return x + self.gated(self.second(x))


class Decoder(nn.Module):
    """``forward(input_ids, labels)`` gives the loss of the next tokens and the logits."""

    def __init__(self, s: Sizes):
        super().__init__()
        self.table = nn.Embedding(s.vocabulary, s.hidden)
        self.layers = nn.ModuleList(Layer(s) for _ in range(s.layers))
        self.last, self.head = Norm(s.hidden), nn.Linear(s.hidden, s.vocabulary, bias=False)
        turns = 500000.0 ** (-torch.arange(0, s.hidden // s.heads, 2) / (s.hidden // s.heads))
        self.register_buffer("turns", turns, persistent=False)

    def forward(self, input_ids, labels=None):
        x = self.table(input_ids)
        angles = torch.arange(input_ids.shape[1], device=x.device)[:, None] * self.turns.float()
        tables = tuple(torch.cat((t, t), -1).to(x.dtype) for t in (angles.cos(), angles.sin()))
        for layer in self.layers:
            x = layer(x, tables)
        logits = self.head(self.last(x))
        if labels is None:
            return logits
        loss = F.cross_entropy(logits[:, :-1].reshape(-1, logits.shape[-1]).float(), labels[:, 1:].reshape(-1))
        return loss, logits
