"""Operations that only move elements: done on the elements' numbers, then gathered. One rule serves them all.

Each float argument is replaced by a tensor of numbers, the operation itself runs on those, and what comes out says
which element of which argument stands where. Values put in from outside (padding, fills) get numbers too.
"""

from __future__ import annotations

from typing import Any

import torch

from ...errors import Unsupported
from ..values import struct, struct_n
from . import rule
from .context import TORCH_FLOATS, Context, Value

UNARY = (
    "view", "_unsafe_view", "reshape", "permute", "t", "transpose", "expand", "squeeze", "unsqueeze", "select", "slice",
    "flip", "roll", "repeat", "diagonal", "unfold", "narrow", "index_select", "gather", "index", "movedim", "swapaxes",
    "squeeze_copy", "view_copy",
)  # fmt: skip
JOINING = (
    "cat", "stack", "split", "split_with_sizes", "unbind", "chunk", "tril", "triu", "slice_scatter", "select_scatter",
    "diagonal_scatter", "index_copy", "concat", "hstack", "vstack", "take_along_dim", "rot90", "pixel_shuffle",
    "pixel_unshuffle", "channel_shuffle", "block_diag", "diag_embed", "masked_scatter", "masked_select", "tile",
    "expand_copy", "permute_copy",
)  # fmt: skip
VALUED = {"constant_pad_nd": (2, 0.0), "scatter": (3, 0.0), "index_fill": (3, 0.0)}


@rule(*UNARY)
def one(c: Context, x: Value, *args: Any, **kwargs: Any) -> Any:
    """The same change of shape on each part of the value."""
    if not isinstance(x, Value):
        return many(c, x, *args, **kwargs)
    rest = [raw(a) for a in args]
    if c.name in ("view", "_unsafe_view", "view_copy"):  # type: ignore[attr-defined]
        return struct(x.data, lambda t: t.reshape(c.out[0].shape))  # the replay keeps no strides
    return struct(x.data, lambda t: c.func(t, *rest, **{k: raw(v) for k, v in kwargs.items()}))  # type: ignore[attr-defined]


@rule(*JOINING)
def many(c: Context, *args: Any, **kwargs: Any) -> Any:
    return numbered(c, list(args), kwargs)


def _valued(name: str) -> Any:
    at, default = VALUED[name]

    def fn(c: Context, *args: Any, **kwargs: Any) -> Any:
        values = list(args)
        if len(values) <= at:
            values.append(kwargs.pop("value", default))
        if not isinstance(values[at], Value):
            values[at] = Value(c.number(values[at]), torch.float64)
        return numbered(c, values, kwargs, scalar=at)

    return fn


for _name in VALUED:
    rule(_name)(_valued(_name))


def raw(v: Any) -> Any:
    """Integer arguments as plain tensors."""
    if isinstance(v, Value):
        if v.is_float:
            raise Unsupported("an index made of floats")
        return v.data
    return [raw(x) for x in v] if isinstance(v, list | tuple) else v


def numbered(c: Context, args: list[Any], kwargs: dict[str, Any], scalar: int | None = None) -> Any:
    """The operation on numbers, and the elements that they stand for. ``scalar``: an argument that aten wants as a
    Python number."""
    pool: list[Any] = [struct(c.number(0.0), lambda t: t.reshape(1))]
    size = 1

    def number(v: Any) -> Any:
        nonlocal size
        if isinstance(v, Value) and v.is_float:
            count = v.data.shape.numel()
            ids = torch.arange(size, size + count).reshape(v.shape)
            pool.append(struct(v.data, lambda t: t.reshape(-1)))
            size += count
            return ids
        if isinstance(v, list | tuple):
            return [number(x) for x in v]
        return v.data if isinstance(v, Value) else v

    ready = [number(a) for a in args]
    if scalar is not None and ready[scalar].dim() == 0:
        ready[scalar] = int(ready[scalar])
    named = {k: number(v) for k, v in kwargs.items() if k != "dtype"}
    out = c.func(*ready, **named)  # type: ignore[attr-defined]
    flat = struct_n(pool, lambda ts: torch.cat([*ts]))

    def elements(ids: torch.Tensor) -> Any:
        got = c.domain.take(flat, ids.reshape(-1))
        return struct(got, lambda t: t.reshape(ids.shape))

    return tuple(elements(o) for o in out) if isinstance(out, list | tuple) else elements(out)


@rule("embedding")
def embedding(c: Context, weight: Value, index: Value, *args: Any) -> Any:
    return struct(weight.data, lambda t: t[index.data])


@rule("fill")
def fill(c: Context, x: Value, value: Any) -> Any:
    return _filled(c, value)


@rule("zero")
def zero(c: Context, x: Value) -> Any:
    return _filled(c, 0)


def _filled(c: Context, value: Any) -> Any:
    shape, dtype = c.out[0].shape, c.out[0].dtype
    if dtype not in TORCH_FLOATS:
        if isinstance(value, Value):
            value = value.data
        return torch.full(shape, value, dtype=dtype)
    return struct(c.lift(value), lambda t: t.reshape(()).expand(shape))


@rule("zeros", "zeros_like", "new_zeros")
def zeros(c: Context, *args: Any, **kwargs: Any) -> Any:
    return _filled(c, 0)


@rule("ones", "ones_like", "new_ones")
def ones(c: Context, *args: Any, **kwargs: Any) -> Any:
    return _filled(c, 1)


@rule("full", "full_like", "new_full")
def full(c: Context, like: Any, value: Any, *args: Any, **kwargs: Any) -> Any:
    if isinstance(like, Value) and args:  # new_full(self, size, value)
        value = args[0]
    return _filled(c, value)


@rule("scalar_tensor")
def scalar_tensor(c: Context, value: Any, **kwargs: Any) -> Any:
    return _filled(c, value)


@rule("arange", "eye", "tril_indices", "triu_indices")
def arange(c: Context, *args: Any, **kwargs: Any) -> Any:
    kept = {"dtype": torch.float64} if c.out[0].dtype in TORCH_FLOATS else {"dtype": c.out[0].dtype}
    made = c.func(*args, **kept)  # type: ignore[attr-defined]
    return c.exact(made) if c.out[0].dtype in TORCH_FLOATS else made


@rule("linspace")
def linspace(c: Context, start: Any, end: Any, steps: int, **kwargs: Any) -> Any:
    ramp = c.exact(torch.arange(steps, dtype=torch.float64))
    width = c.apply("div", c.apply("sub", end, start), float(max(steps - 1, 1)))
    return c.apply("add", start, c.apply("mul", ramp, width))


# -- adding up at places


def added(c: Context, x: Any, index: torch.Tensor, values: Any) -> Any:
    """``x`` (flat) with values added at flat places that may repeat."""
    from ..program import Type

    base = struct(c.lift(x), lambda t: t.clone(memory_format=torch.contiguous_format))
    return c.domain.add_at(base, index.reshape(-1), struct(c.lift(values), lambda t: t.reshape(-1)), Type("f32"))


def add_where(c: Context, x: Value, place: Any, values: Any) -> Any:
    """``place`` chooses elements of a tensor like x; ``values`` are added to them."""
    numbers = torch.arange(x.data.shape.numel()).reshape(x.shape)
    index = place(numbers)
    spread = struct(c.lift(values), lambda t: t.expand(index.shape) if t.shape != index.shape else t)
    out = added(c, struct(x.data, lambda t: t.reshape(-1)), index, spread)
    return struct(out, lambda t: t.reshape(x.shape))


@rule("scatter_add")
def scatter_add(c: Context, x: Value, dim: int, index: Value, source: Value) -> Any:
    cut = tuple(slice(0, n) for n in index.shape)
    return add_where(c, x, lambda n: n.gather(dim, index.data), struct(source.data, lambda t: t[cut]))


@rule("index_add")
def index_add(c: Context, x: Value, dim: int, index: Value, source: Value, alpha: Any = 1) -> Any:
    values = source if alpha == 1 else c.apply("mul", source, alpha)
    return add_where(c, x, lambda n: n.index_select(dim, index.data), values)


@rule("index_put", "_unsafe_index_put")
def index_put(c: Context, x: Value, indices: list[Any], values: Any, accumulate: bool = False) -> Any:
    chosen = [slice(None) if i is None else i.data for i in indices]
    if accumulate:
        return add_where(c, x, lambda n: n[tuple(chosen)], values)
    numbers = torch.arange(x.data.shape.numel()).reshape(x.shape)[tuple(chosen)]
    base = struct(x.data, lambda t: t.reshape(-1).clone())
    spread = struct(c.lift(values), lambda t: t.expand(numbers.shape).reshape(-1))
    out = c.domain.put(base, numbers.reshape(-1), spread)
    return struct(out, lambda t: t.reshape(x.shape))


@rule("embedding_dense_backward")
def embedding_dense_backward(c: Context, grad: Value, index: Value, count: int, padding: int, *args: Any) -> Any:
    width = grad.shape[-1]
    rows = index.data.reshape(-1)
    keep = (rows != padding).nonzero().reshape(-1)
    places = rows[keep].reshape(-1, 1) * width + torch.arange(width)
    values = struct(grad.data, lambda t: t.reshape(-1, width)[keep])
    out = added(c, c.full((count * width,), 0.0), places, values)
    return struct(out, lambda t: t.reshape(count, width))
