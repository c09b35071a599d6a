"""Matrix products and convolutions."""

from __future__ import annotations

import math
from typing import Any

import torch

from ..values import struct, struct_n
from . import rule
from .context import Context, Value


@rule("mm", "bmm", "matmul")
def mm(c: Context, a: Value, b: Value) -> Any:
    return c.dot(a, b)


@rule("mv")
def mv(c: Context, a: Value, x: Value) -> Any:
    out = c.dot(a, Value(struct(x.data, lambda t: t.reshape(-1, 1)), x.dtype))
    return struct(out, lambda t: t.reshape(-1))


@rule("dot", "vdot")
def dot(c: Context, a: Value, b: Value) -> Any:
    return c.fold("add", c.apply("mul", a, b), [0], False, 0.0)


def _added(c: Context, x: Any, product: Any, beta: Any, alpha: Any) -> Any:
    product = product if alpha == 1 else c.apply("mul", product, alpha)
    if beta == 0:
        return product
    return c.apply("add", x if beta == 1 else c.apply("mul", x, beta), product)


@rule("addmm", "baddbmm")
def addmm(c: Context, x: Value, a: Value, b: Value, beta: Any = 1, alpha: Any = 1) -> Any:
    return _added(c, x, c.dot(a, b), beta, alpha)


@rule("addmv")
def addmv(c: Context, x: Value, a: Value, b: Value, beta: Any = 1, alpha: Any = 1) -> Any:
    return _added(c, x, mv(c, a, b), beta, alpha)


@rule("addbmm")
def addbmm(c: Context, x: Value, a: Value, b: Value, beta: Any = 1, alpha: Any = 1) -> Any:
    return _added(c, x, c.fold("add", c.dot(a, b), [0], False), beta, alpha)


def windows(x: Any, sizes: list[int], stride: list[int], dilation: list[int]) -> Any:
    """Sliding windows over the trailing axes: (…, out sizes, window sizes)."""
    rank = len(sizes)

    def cut(t: torch.Tensor) -> torch.Tensor:
        first = t.dim() - rank
        for i in range(rank):
            reach = (sizes[i] - 1) * dilation[i] + 1
            t = t.unfold(first + i, reach, stride[i])[..., :: dilation[i]]
        return t

    return struct(x, cut)


def padded(c: Context, x: Any, padding: list[int], value: float) -> Any:
    """Trailing axes with ``padding`` elements on either side."""
    for i, n in enumerate(padding):
        if n:
            axis = len(x.shape) - len(padding) + i
            sizes = [*x.shape[:axis], n, *x.shape[axis + 1 :]]
            side = c.full(sizes, value)
            x = struct_n([side, x, side], lambda ts: torch.cat([*ts], axis))  # noqa: B023
    return x


def per_axis(v: Any, rank: int) -> list[int]:
    values = list(v) if isinstance(v, list | tuple) else [v]
    return values * rank if len(values) == 1 else values


@rule("convolution")
def convolution(c: Context, x: Value, w: Value, bias: Any, stride: Any, padding: Any, dilation: Any, transposed: bool,
                output_padding: Any, groups: int) -> Any:  # fmt: skip
    rank = w.dim() - 2
    batched = x.dim() == w.dim()
    data = x.data if batched else struct(x.data, lambda t: t.unsqueeze(0))
    stride, padding, dilation = (per_axis(v, rank) for v in (stride, padding, dilation))
    weight = w.data
    if transposed:
        data, weight, padding = _turned(
            c, data, weight, stride, padding, dilation, per_axis(output_padding, rank), groups
        )
        stride = [1] * rank
    else:
        data = padded(c, data, padding, 0.0)
    out = _convolved(c, data, weight, stride, dilation, groups)
    if isinstance(bias, Value):
        out = c.apply("add", out, struct(bias.data, lambda t: t.reshape(1, -1, *[1] * rank)))
    return out if batched else struct(out, lambda t: t.squeeze(0))


def _convolved(c: Context, x: Any, w: Any, stride: list[int], dilation: list[int], groups: int) -> Any:
    rank = len(stride)
    cut = windows(x, list(w.shape[2:]), stride, dilation)
    n, channels = cut.shape[:2]
    spatial = list(cut.shape[2 : 2 + rank])
    per = channels // groups
    taps = per * math.prod(w.shape[2:])
    order = [0, 1, *range(3, 3 + rank), 2, *range(3 + rank, 3 + 2 * rank)]  # group, n, out…, channels of a group, taps…

    def rows(t: torch.Tensor) -> torch.Tensor:
        split = t.reshape(n, groups, per, *t.shape[2:]).movedim(1, 0)
        return split.permute(order).reshape(groups, -1, taps)

    left = struct(cut, rows)
    right = struct(w, lambda t: t.reshape(groups, -1, taps).transpose(1, 2))
    out = c.dot(left, right)  # groups, n·out, filters of a group
    filters = w.shape[0] // groups
    return struct(out, lambda t: t.reshape(groups, n, *spatial, filters).permute(
        1, 0, 2 + rank, *range(2, 2 + rank)).reshape(n, groups * filters, *spatial))  # fmt: skip


def _turned(c: Context, x: Any, w: Any, stride: list[int], padding: list[int], dilation: list[int], extra: list[int],
            groups: int) -> Any:  # fmt: skip
    """A transposed convolution as a plain one: input spread out by the stride, filters flipped, in and out
    exchanged."""
    rank = len(stride)
    spread = c.full([*x.shape[:2], *[(s - 1) * d + 1 for s, d in zip(x.shape[2:], stride, strict=True)]], 0.0)
    spread = struct(spread, lambda t: t.clone(memory_format=torch.contiguous_format))
    places = torch.arange(spread.shape.numel()).reshape(spread.shape)
    for i, step in enumerate(stride):
        places = places.index_select(2 + i, torch.arange(0, places.shape[2 + i], step))
    flat = c.domain.put(struct(spread, lambda t: t.reshape(-1)), places.reshape(-1), struct(x, lambda t: t.reshape(-1)))
    data = struct(flat, lambda t: t.reshape(spread.shape))
    for i in range(rank):
        reach = (w.shape[2 + i] - 1) * dilation[i] - padding[i]
        data = _pad_sides(c, data, 2 + i, reach, reach + extra[i])
    per = w.shape[0] // groups
    turned = struct(w, lambda t: t.reshape(groups, per, *t.shape[1:]).transpose(1, 2).reshape(
        -1, per, *t.shape[2:]).flip(list(range(2, 2 + rank))))  # fmt: skip
    return data, turned, [0] * rank


def _pad_sides(c: Context, x: Any, axis: int, before: int, after: int) -> Any:
    """One axis with zeros added (or elements cut, where negative) on either side."""
    parts = [x]
    for n, first in ((before, True), (after, False)):
        if n > 0:
            side = c.full([*x.shape[:axis], n, *x.shape[axis + 1 :]], 0.0)
            parts = [side, *parts] if first else [*parts, side]
    x = struct_n(parts, lambda ts: torch.cat([*ts], axis)) if len(parts) > 1 else x
    low, high = max(-before, 0), x.shape[axis] - max(-after, 0)
    return struct(x, lambda t: t.narrow(axis, low, high - low))


@rule("avg_pool1d", "avg_pool2d", "avg_pool3d")
def avg_pool(c: Context, x: Value, kernel: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False,
             count_include_pad: bool = True, divisor_override: int | None = None) -> Any:  # fmt: skip
    rank = _pool_rank(c)
    kernel = per_axis(kernel, rank)
    stride = per_axis(stride or kernel, rank)
    padding = per_axis(padding, rank)
    sums = _pooled(c, "add", x, kernel, stride, padding, [1] * rank, 0.0, ceil_mode)
    if divisor_override or (count_include_pad and not ceil_mode):
        return c.apply("div", sums, float(divisor_override or math.prod(kernel)))
    ones = Value(c.full(x.shape, 1.0), x.dtype)
    return c.apply("div", sums, _pooled(c, "add", ones, kernel, stride, padding, [1] * rank, 0.0, ceil_mode))


def _pool_rank(c: Context) -> int:
    name = c.name  # type: ignore[attr-defined]
    return int(name[name.index("pool") + 4])


def _pooled(c: Context, how: str, x: Value, kernel: list[int], stride: list[int], padding: list[int],
            dilation: list[int], value: float, ceil_mode: bool) -> Any:  # fmt: skip
    rank = len(kernel)
    data = padded(c, x.data, padding, value)
    for i in range(rank):  # the last window may hang over the edge
        axis = len(x.shape) - rank + i
        reach = (c.out[0].shape[axis] - 1) * stride[i] + (kernel[i] - 1) * dilation[i] + 1
        data = _pad_with(c, data, axis, max(0, reach - data.shape[axis]), value)
    cut = windows(data, kernel, stride, dilation)
    for i in range(rank):
        n = c.out[0].shape[len(x.shape) - rank + i]
        cut = struct(cut, lambda t: t.narrow(t.dim() - 2 * rank + i, 0, n))  # noqa: B023
    last = len(cut.shape)
    return c.fold(how, cut, list(range(last - rank, last)), False)


def _pad_with(c: Context, x: Any, axis: int, n: int, value: float) -> Any:
    if not n:
        return x
    side = c.full([*x.shape[:axis], n, *x.shape[axis + 1 :]], value)
    return struct_n([x, side], lambda ts: torch.cat([*ts], axis))


@rule("max_pool2d_with_indices", "max_pool3d_with_indices")
def max_pool(c: Context, x: Value, kernel: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1,
             ceil_mode: bool = False) -> Any:  # fmt: skip
    """Values, and where they stand in the unpadded plane (by the domain's order)."""
    rank = _pool_rank(c)
    kernel = per_axis(kernel, rank)
    args = (kernel, per_axis(stride or kernel, rank), per_axis(padding, rank), per_axis(dilation, rank))
    values = _pooled(c, "maximum", x, *args, -math.inf, ceil_mode)
    key = c.order(x.data)
    index = c.func(key, *args, ceil_mode)[1]  # type: ignore[attr-defined]
    return values, index


def _adaptive(c: Context, how: str, x: Value, sizes: list[int]) -> Any:
    """Windows from floor(i n / m) to ceil((i + 1) n / m), along each trailing axis in turn."""
    data = x.data
    for i, m in enumerate(sizes):
        axis = len(data.shape) - len(sizes) + i
        n = data.shape[axis]
        parts = []
        for j in range(m):
            low, high = j * n // m, -(-(j + 1) * n // m)
            part = c.fold(how, struct(data, lambda t: t.narrow(axis, low, high - low)), [axis], True)  # noqa: B023
            parts.append(part if how != "add" else c.apply("div", part, float(high - low)))
        data = struct_n(parts, lambda ts: torch.cat([*ts], axis))  # noqa: B023
    return data


@rule("_adaptive_avg_pool2d", "_adaptive_avg_pool3d", "adaptive_avg_pool1d")
def adaptive_avg_pool(c: Context, x: Value, sizes: list[int]) -> Any:
    return _adaptive(c, "add", x, sizes)


@rule("_cdist_forward")
def cdist(c: Context, a: Value, b: Value, p: float, mode: Any = None) -> Any:
    rows = struct(a.data, lambda t: t.unsqueeze(-2))
    columns = struct(b.data, lambda t: t.unsqueeze(-3))
    gap = c.apply("sub", rows, columns)
    if p == 2:
        return c.apply("sqrt", c.fold("add", c.apply("mul", gap, gap), [-1], False, 0.0))
    if p == 1:
        return c.fold("add", c.apply("abs", gap), [-1], False, 0.0)
    raise NotImplementedError(f"distances of order {p}")
