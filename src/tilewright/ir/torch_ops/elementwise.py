"""Elementwise operations: arithmetic, functions, comparisons, selection, conversion."""

from __future__ import annotations

import math
from typing import Any

import torch

from ...errors import Unsupported
from ..program import Type
from ..values import ELEM
from . import rule
from .context import TORCH_FLOATS, Context, Value

_SAME = (
    "exp", "exp2", "log", "log2", "log10", "log1p", "expm1", "sin", "cos", "tan", "asin", "acos", "atan", "sinh",
    "cosh", "tanh", "asinh", "acosh", "atanh", "sqrt", "rsqrt", "erf", "erfc", "erfinv", "floor", "ceil", "trunc",
    "neg", "abs", "sigmoid", "lgamma", "maximum", "minimum", "atan2", "hypot", "copysign",
)  # fmt: skip
_ALIAS = {"reciprocal": "rcp", "round": "rint", "negative": "neg", "fmax": "maxnum", "fmin": "minnum",
          "special_ndtr": "normcdf", "fmod": "rem"}  # fmt: skip


def _plain(name: str) -> Any:
    def fn(c: Context, *args: Any) -> Any:
        return c.apply(name, *args)

    return fn


for _name in _SAME:
    rule(_name)(_plain(_name))
for _name, _ours in _ALIAS.items():
    rule(_name)(_plain(_ours))


def scaled(c: Context, b: Any, alpha: Any) -> Any:
    return b if alpha == 1 else c.apply("mul", b, alpha)


@rule("add")
def add(c: Context, a: Any, b: Any, alpha: Any = 1) -> Any:
    return c.apply("add", a, scaled(c, b, alpha))


@rule("sub")
def sub(c: Context, a: Any, b: Any, alpha: Any = 1) -> Any:
    return c.apply("sub", a, scaled(c, b, alpha))


@rule("rsub")
def rsub(c: Context, a: Any, b: Any, alpha: Any = 1) -> Any:
    return c.apply("sub", b, scaled(c, a, alpha))


@rule("mul")
def mul(c: Context, a: Any, b: Any) -> Any:
    return c.apply("mul", a, b)


@rule("div", "true_divide")
def div(c: Context, a: Any, b: Any, rounding_mode: str | None = None) -> Any:
    out = c.apply("div", a, b)
    return out if rounding_mode is None else c.apply(rounding_mode, out)


@rule("floor_divide")
def floor_divide(c: Context, a: Any, b: Any) -> Any:
    return c.apply("floor", c.apply("div", a, b))


@rule("remainder")
def remainder(c: Context, a: Any, b: Any) -> Any:
    return c.apply("sub", a, c.apply("mul", b, c.apply("floor", c.apply("div", a, b))))


@rule("pow")
def power(c: Context, a: Any, b: Any) -> Any:
    if isinstance(b, Value) and not b.is_float and b.data.numel() == 1:
        b = int(b.data)
    return c.apply("pow", a, b)


@rule("square")
def square(c: Context, a: Any) -> Any:
    return c.apply("mul", a, a)


@rule("addcmul")
def addcmul(c: Context, a: Any, x: Any, y: Any, value: Any = 1) -> Any:
    return c.apply("add", a, scaled(c, c.apply("mul", x, y), value))


@rule("addcdiv")
def addcdiv(c: Context, a: Any, x: Any, y: Any, value: Any = 1) -> Any:
    return c.apply("add", a, scaled(c, c.apply("div", x, y), value))


@rule("lerp")
def lerp(c: Context, a: Any, b: Any, weight: Any) -> Any:
    return c.apply("add", a, c.apply("mul", weight, c.apply("sub", b, a)))


@rule("relu")
def relu(c: Context, a: Any) -> Any:
    return c.apply("maximum", a, 0.0)


@rule("clamp", "hardtanh")
def clamp(c: Context, a: Any, low: Any = None, high: Any = None) -> Any:
    out = c.lift(a)
    out = out if low is None else c.apply("maximum", out, low)
    return out if high is None else c.apply("minimum", out, high)


@rule("clamp_min")
def clamp_min(c: Context, a: Any, low: Any) -> Any:
    return c.apply("maximum", a, low)


@rule("clamp_max")
def clamp_max(c: Context, a: Any, high: Any) -> Any:
    return c.apply("minimum", a, high)


@rule("silu")
def silu(c: Context, a: Any) -> Any:
    return c.apply("mul", a, c.apply("sigmoid", a))


@rule("gelu")
def gelu(c: Context, x: Any, approximate: str = "none") -> Any:
    half = c.apply("mul", x, 0.5)
    if approximate == "tanh":
        cube = c.apply("mul", c.apply("mul", x, x), x)
        inner = c.apply("mul", c.apply("add", x, c.apply("mul", cube, 0.044715)), math.sqrt(2 / math.pi))
        return c.apply("mul", half, c.apply("add", c.apply("tanh", inner), 1.0))
    return c.apply("mul", half, c.apply("add", c.apply("erf", c.apply("mul", x, math.sqrt(0.5))), 1.0))


# -- comparing and choosing

_PREDICATES = {"eq": "oeq", "ne": "une", "lt": "olt", "le": "ole", "gt": "ogt", "ge": "oge"}


def _comparison(predicate: str) -> Any:
    def fn(c: Context, a: Any, b: Any) -> Any:
        return c.compare(predicate, a, b)

    return fn


for _name, _ours in _PREDICATES.items():
    rule(_name)(_comparison(_ours))


def _class(name: str) -> Any:
    return lambda c, a: c.domain.classify(name, c.lift(a), c.where)


for _name in ("isnan", "isinf", "isfinite", "signbit"):
    rule(_name)(_class(_name))


def truth(c: Context, a: Any) -> torch.Tensor:
    """A value as booleans."""
    if isinstance(a, Value) and not a.is_float:
        return a.data != 0
    return c.compare("une", a, 0.0)


@rule("logical_not")
def logical_not(c: Context, a: Any) -> Any:
    return ~truth(c, a)


@rule("logical_and")
def logical_and(c: Context, a: Any, b: Any) -> Any:
    return truth(c, a) & truth(c, b)


@rule("logical_or")
def logical_or(c: Context, a: Any, b: Any) -> Any:
    return truth(c, a) | truth(c, b)


@rule("where")
def where(c: Context, mask: Value, a: Any, b: Any) -> Any:
    return c.select(truth(c, mask), a, b)


@rule("masked_fill")
def masked_fill(c: Context, a: Any, mask: Value, value: Any) -> Any:
    return c.select(mask.data, value, a)


@rule("sign")
def sign(c: Context, a: Any) -> Any:
    above, below = c.compare("ogt", a, 0.0), c.compare("olt", a, 0.0)
    return c.select(above, 1.0, c.select(below, -1.0, 0.0))


@rule("nan_to_num")
def nan_to_num(c: Context, a: Any, nan: Any = None, posinf: Any = None, neginf: Any = None) -> Any:
    top = torch.finfo(c.out[0].dtype).max
    infinite = c.domain.classify("isinf", c.lift(a), c.where)
    negative = c.compare("olt", a, 0.0)
    out = c.select(infinite & negative, -top if neginf is None else neginf, a)
    out = c.select(infinite & ~negative, top if posinf is None else posinf, out)
    return c.select(c.domain.classify("isnan", c.lift(a), c.where), nan or 0.0, out)


# -- conversion and copies


@rule(
    "_to_copy", "copy", "clone", "contiguous", "detach", "alias", "lift_fresh", "lift_fresh_copy", "lift", "to", "_conj"
)
def convert(c: Context, a: Any, b: Any = None, *args: Any, **kwargs: Any) -> Any:
    """``copy(self, source)`` gives the source in the dtype and sizes of self."""
    x = b if isinstance(b, Value) else a
    wanted = c.out[0].dtype
    data = to_dtype(c, x, wanted)
    if isinstance(b, Value):
        from ..values import struct

        data = struct(data, lambda t: t.expand(c.out[0].shape))
    return data


def to_dtype(c: Context, x: Any, wanted: torch.dtype) -> Any:
    """A value's data in another dtype: casts between floats change nothing but the ledger."""
    if not isinstance(x, Value):
        return c.lift(x)
    if wanted in TORCH_FLOATS:
        if x.is_float:
            return c.domain.cast(x.data, Type(ELEM[x.dtype]), Type(ELEM[wanted]), "rtne", c.where)
        return c.lift(x)
    if not x.is_float:
        return x.data.to(wanted)
    if wanted == torch.bool:
        return truth(c, x)
    if wanted.is_complex:
        raise Unsupported(f"{wanted} in the {c.domain.name} domain", where=c.where)
    return c.domain.to_int(x.data, Type(ELEM[x.dtype]), Type(ELEM[wanted]), True, c.where).to(wanted)
