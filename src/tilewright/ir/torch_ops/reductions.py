"""Reductions, scans, order."""

from __future__ import annotations

import math
from typing import Any

import torch

from ...errors import Unsupported
from ..values import struct, struct_n
from . import rule
from .context import Context, Value, every_dim


def count_of(x: Value, dims: list[int]) -> int:
    return math.prod(x.shape[d] for d in dims) if x.dim() else 1


@rule("sum")
def sum_(c: Context, x: Value, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Any:
    return c.fold("add", x, every_dim(x, dim), keepdim, 0.0)


@rule("mean")
def mean(c: Context, x: Value, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Any:
    dims = every_dim(x, dim)
    return c.apply("div", c.fold("add", x, dims, keepdim, 0.0), float(count_of(x, dims)))


@rule("prod")
def prod(c: Context, x: Value, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Any:
    return c.fold("mul", x, every_dim(x, dim), keepdim, 1.0)


@rule("amax")
def amax(c: Context, x: Value, dim: Any = None, keepdim: bool = False) -> Any:
    return c.fold("maximum", x, every_dim(x, dim), keepdim)


@rule("amin")
def amin(c: Context, x: Value, dim: Any = None, keepdim: bool = False) -> Any:
    return c.fold("minimum", x, every_dim(x, dim), keepdim)


def _extreme(c: Context, name: str, x: Value, args: tuple[Any, ...], keepdim: bool) -> Any:
    if not args:
        return c.fold(name, x, every_dim(x, None), False)
    if isinstance(args[0], Value):
        return c.apply(name, x, args[0])
    dim, keepdim = args[0], args[1] if len(args) > 1 else keepdim
    place = _argument(c, name, x, dim, True)
    values = gathered(c, x.data, dim, place)
    if keepdim:
        return values, place
    return struct(values, lambda t: t.squeeze(dim)), place.squeeze(dim)


@rule("max")
def max_(c: Context, x: Value, *args: Any, keepdim: bool = False) -> Any:
    return _extreme(c, "maximum", x, args, keepdim)


@rule("min")
def min_(c: Context, x: Value, *args: Any, keepdim: bool = False) -> Any:
    return _extreme(c, "minimum", x, args, keepdim)


def _argument(c: Context, name: str, x: Value, dim: int | None, keepdim: bool) -> torch.Tensor:
    key = c.order(x.data)
    choose = torch.argmax if name == "maximum" else torch.argmin
    return choose(key, dim, keepdim) if dim is not None else choose(key)


@rule("argmax")
def argmax(c: Context, x: Value, dim: int | None = None, keepdim: bool = False) -> Any:
    return _argument(c, "maximum", x, dim, keepdim)


@rule("argmin")
def argmin(c: Context, x: Value, dim: int | None = None, keepdim: bool = False) -> Any:
    return _argument(c, "minimum", x, dim, keepdim)


def gathered(c: Context, data: Any, dim: int, index: torch.Tensor) -> Any:
    return struct(data, lambda t: t.gather(dim, index))


@rule("sort")
def sort(c: Context, x: Value, *args: Any, dim: int = -1, descending: bool = False, stable: bool = True) -> Any:
    rest = [a for a in args if not (a is None or isinstance(a, bool))]
    flags = [a for a in args if isinstance(a, bool)]
    dim = rest[0] if rest else dim
    descending = flags[-1] if flags else descending
    if x.dim() == 0:
        return x.data, torch.zeros((), dtype=torch.int64)
    index = torch.sort(c.order(x.data), dim=dim, descending=descending, stable=True).indices
    return gathered(c, x.data, dim, index), index


@rule("argsort")
def argsort(c: Context, x: Value, dim: int = -1, descending: bool = False) -> Any:
    return torch.sort(c.order(x.data), dim=dim, descending=descending, stable=True).indices


@rule("topk")
def topk(c: Context, x: Value, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> Any:
    index = torch.sort(c.order(x.data), dim=dim, descending=largest, stable=True).indices.narrow(dim, 0, k)
    return gathered(c, x.data, dim, index), index


@rule("any")
def any_(c: Context, x: Value, dim: Any = None, keepdim: bool = False) -> Any:
    flags = c.compare("une", x, 0.0)
    return torch.any(flags) if dim is None else torch.any(flags, dim, keepdim)


@rule("all")
def all_(c: Context, x: Value, dim: Any = None, keepdim: bool = False) -> Any:
    flags = c.compare("une", x, 0.0)
    return torch.all(flags) if dim is None else torch.all(flags, dim, keepdim)


@rule("count_nonzero")
def count_nonzero(c: Context, x: Value, dim: Any = None) -> Any:
    flags = c.compare("une", x, 0.0)
    return torch.count_nonzero(flags, dim)


def moments(c: Context, x: Any, dims: list[int], correction: float = 0.0) -> tuple[Any, Any]:
    """Variance and mean, both with their dims kept."""
    n = math.prod(x.shape[d] for d in dims) if len(x.shape) else 1
    mean = c.apply("div", c.fold("add", x, dims, True, 0.0), float(n))
    centred = c.apply("sub", x, mean)
    total = c.fold("add", c.apply("mul", centred, centred), dims, True, 0.0)
    if n - correction <= 0:
        raise Unsupported("a variance of too few elements", where=c.where)
    return c.apply("div", total, float(n - correction)), mean


def _var(c: Context, x: Value, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Any]:
    """Both overloads: ``(x, unbiased)``, ``(x, dim, unbiased, keepdim)``, ``(x, dim, *, correction, keepdim)``."""
    rest = list(args)
    dim = None
    if rest and not isinstance(rest[0], bool):
        dim = rest.pop(0)
    correction = kwargs.get("correction")
    correction = 1.0 if correction is None else float(correction)
    if rest:
        correction = float(rest.pop(0))
    keepdim = bool(rest.pop(0)) if rest else kwargs.get("keepdim", False)
    dims = [d % max(x.dim(), 1) for d in every_dim(x, dim)]
    both = moments(c, c.lift(x), dims, correction)
    if not keepdim:
        sizes = [n for d, n in enumerate(x.shape) if d not in dims]
        both = tuple(struct(v, lambda t: t.reshape(sizes)) for v in both)  # type: ignore[assignment]
    return both


@rule("var")
def var(c: Context, x: Value, *args: Any, **kwargs: Any) -> Any:
    return _var(c, x, args, kwargs)[0]


@rule("var_mean")
def var_mean(c: Context, x: Value, *args: Any, **kwargs: Any) -> Any:
    return _var(c, x, args, kwargs)


@rule("std")
def std(c: Context, x: Value, *args: Any, **kwargs: Any) -> Any:
    return c.apply("sqrt", _var(c, x, args, kwargs)[0])


def scan(c: Context, name: str, x: Any, dim: int) -> Any:
    """Inclusive scan by doubling."""
    x = c.lift(x)
    if not len(x.shape):
        return x
    moved = struct(x, lambda t: t.movedim(dim, -1))
    n, reach = moved.shape[-1], 1
    while reach < n:
        done = c.apply(name, struct(moved, lambda t: t[..., : n - reach]), struct(moved, lambda t: t[..., reach:]))  # noqa: B023
        head = struct(moved, lambda t: t[..., :reach])  # noqa: B023
        moved = struct_n([head, done], lambda ts: torch.cat([*ts], -1))
        reach *= 2
    return struct(moved, lambda t: t.movedim(-1, dim))


@rule("cumsum")
def cumsum(c: Context, x: Value, dim: int, dtype: Any = None) -> Any:
    return scan(c, "add", x, dim)


@rule("cumprod")
def cumprod(c: Context, x: Value, dim: int, dtype: Any = None) -> Any:
    return scan(c, "mul", x, dim)


@rule("logsumexp")
def logsumexp(c: Context, x: Value, dim: Any, keepdim: bool = False) -> Any:
    dims = every_dim(x, dim)
    top = c.fold("maximum", x, dims, True)
    infinite = c.domain.classify("isinf", top, c.where)
    top = c.select(infinite, 0.0, top)
    out = c.apply("add", c.apply("log", c.fold("add", c.apply("exp", c.apply("sub", x, top)), dims, True)), top)
    if keepdim:
        return out
    sizes = [n for d, n in enumerate(x.shape) if d not in [k % x.dim() for k in dims]]
    return struct(out, lambda t: t.reshape(sizes))
