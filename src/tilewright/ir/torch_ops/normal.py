"""Softmax and normalisations, which aten keeps whole."""

from __future__ import annotations

import math
from typing import Any

import torch

from ...errors import Unsupported
from ..values import struct
from . import rule
from .context import Context, Value
from .reductions import moments


@rule("_softmax", "_safe_softmax", "softmax")
def softmax(c: Context, x: Value, dim: int, *args: Any, **kwargs: Any) -> Any:
    e = c.apply("exp", c.apply("sub", x, c.fold("maximum", x, [dim], True)))
    return c.apply("div", e, c.fold("add", e, [dim], True))


@rule("_log_softmax", "log_softmax")
def log_softmax(c: Context, x: Value, dim: int, *args: Any, **kwargs: Any) -> Any:
    shifted = c.apply("sub", x, c.fold("maximum", x, [dim], True))
    return c.apply("sub", shifted, c.apply("log", c.fold("add", c.apply("exp", shifted), [dim], True)))


@rule("native_layer_norm")
def native_layer_norm(c: Context, x: Value, shape: list[int], weight: Any, bias: Any, eps: float) -> Any:
    dims = list(range(x.dim() - len(shape), x.dim()))
    variance, mean = moments(c, x.data, dims)
    scale = c.apply("rsqrt", c.apply("add", variance, eps))
    out = affine(c, c.apply("mul", c.apply("sub", x, mean), scale), weight, bias)
    return out, mean, scale


def affine(c: Context, x: Any, weight: Any, bias: Any) -> Any:
    out = c.apply("mul", x, weight) if isinstance(weight, Value) else x
    return c.apply("add", out, bias) if isinstance(bias, Value) else out


@rule("_fused_rms_norm")
def rms_norm(c: Context, x: Value, shape: list[int], weight: Any, eps: float | None) -> Any:
    dims = list(range(x.dim() - len(shape), x.dim()))
    n = 1
    for d in dims:
        n *= x.shape[d]
    mean = c.apply("div", c.fold("add", c.apply("mul", x, x), dims, True, 0.0), float(n))
    scale = c.apply("rsqrt", c.apply("add", mean, torch.finfo(x.dtype).eps if eps is None else eps))
    return affine(c, c.apply("mul", x, scale), weight, None), scale


@rule("native_group_norm")
def native_group_norm(c: Context, x: Value, weight: Any, bias: Any, n: int, channels: int, inner: int, groups: int,
                      eps: float) -> Any:  # fmt: skip
    split = struct(x.data, lambda t: t.reshape(n, groups, -1))
    variance, mean = moments(c, split, [2])
    scale = c.apply("rsqrt", c.apply("add", variance, eps))
    normal = c.apply("mul", c.apply("sub", split, mean), scale)
    out = struct(normal, lambda t: t.reshape(n, channels, -1))
    per = [Value(struct(v.data, lambda t: t.reshape(1, -1, 1)), v.dtype) if isinstance(v, Value) else None
           for v in (weight, bias)]  # fmt: skip
    out = affine(c, out, *per)
    return struct(out, lambda t: t.reshape(x.shape)), mean, scale


@rule("native_batch_norm", "_native_batch_norm_legit", "cudnn_batch_norm")
def batch_norm(c: Context, x: Value, weight: Any, bias: Any, *args: Any) -> Any:
    """Output, mean and 1/deviation of the batch; after them, where training, the new running mean and variance."""
    rest = list(args)
    running = [rest.pop(0), rest.pop(0)] if not isinstance(rest[0], bool) else [None, None]
    training, momentum, eps = rest
    shape = [1, -1, *[1] * (x.dim() - 2)]

    def column(v: Any) -> Any:
        return Value(struct(v.data, lambda t: t.reshape(shape)), v.dtype) if isinstance(v, Value) else None

    if training:
        dims = [d for d in range(x.dim()) if d != 1]
        variance, mean = moments(c, x.data, dims)
    else:
        mean, variance = (column(r).data for r in running)
    scale = c.apply("rsqrt", c.apply("add", variance, eps))
    out = affine(c, c.apply("mul", c.apply("sub", x, mean), scale), column(weight), column(bias))
    saved = [struct(v, lambda t: t.reshape(-1)[: None if training else 0]) for v in (mean, scale)]
    if not training or not isinstance(running[0], Value):
        return out, *saved
    n = math.prod(x.shape[d] for d in dims)
    sample = c.apply("mul", variance, c.apply("div", float(n), float(max(n - 1, 1))))
    moved = []
    for old, new in zip(running, (mean, sample), strict=True):
        flat = struct(new, lambda t: t.reshape(-1))
        moved.append(c.apply("add", c.apply("mul", old, 1 - momentum), c.apply("mul", flat, momentum)))
    return out, *saved, *moved


@rule("_scaled_dot_product_flash_attention_for_cpu")
def attention(c: Context, q: Value, k: Value, v: Value, dropout: float = 0.0, causal: bool = False, *,
              attn_mask: Any = None, scale: float | None = None) -> Any:  # fmt: skip
    """Output and the logarithm of the sum of exponentials."""
    if dropout:
        raise Unsupported("attention with dropout", where=c.where)
    scores = c.dot(q, struct(k.data, lambda t: t.transpose(-2, -1)))
    scores = c.apply("mul", scores, 1 / math.sqrt(q.shape[-1]) if scale is None else scale)
    if isinstance(attn_mask, Value):
        scores = c.apply("add", scores, attn_mask)
    if causal:
        keep = torch.ones(scores.shape[-2:], dtype=torch.bool).tril()
        scores = c.select(keep, scores, c.number(-math.inf))
    top = c.fold("maximum", scores, [-1], True)
    e = c.apply("exp", c.apply("sub", scores, top))
    total = c.fold("add", e, [-1], True)
    out = c.dot(c.apply("div", e, total), v)
    return out, struct(c.apply("add", top, c.apply("log", total)), lambda t: t.squeeze(-1))
