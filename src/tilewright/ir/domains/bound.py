"""Bound domain: each float is its exact value beside a bound on the error that a kernel's roundings can have put in.

Running error analysis to first order (Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed. 2002, ch. 3 and
4): an operation passes on its arguments' errors through its derivatives and adds one rounding of its own, the unit of
its result's type times the result. Sums so get the depth at which each addend is added: a halving tree's log n, a
loop's n. Declared: elementary functions are within four units; a dot's products are exact but for tf32 (two roundings
of 2^-10) and summed one by one in the accumulator's type; undefined memory counts as exact. Products of two errors,
overflow and underflow are left out, and comparisons are taken to come out as they do for exact values.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ...errors import Unsupported
from ..program import Type
from ..values import INTS, bits
from .base import Domain
from .constants import number
from .machine import FUNCTIONS, Machine, compare, to_int

UNIT = {"f64": 2.0**-53, "f32": 2.0**-24, "f16": 2.0**-11, "bf16": 2.0**-8, "f8E4M3FN": 2.0**-4, "f8E5M2": 2.0**-3,
        "f8E4M3FNUZ": 2.0**-4, "f8E5M2FNUZ": 2.0**-3}  # fmt: skip
TF32 = 2.0**-10
ELEMENTARY = 4.0
EXACT = frozenset({"neg", "abs", "maxnum", "minnum", "maximum", "minimum", "clamp", "clamp_nan", "copysign"})
STEPS = frozenset({"floor", "ceil", "trunc", "rint", "round"})
ONE = frozenset({"add", "sub", "mul", "div", "fma", "sqrt", "rcp", "rem", "fdim"})


@dataclass(slots=True)
class Bounded:
    """``value`` in float64 without roundings, ``error`` a bound on its distance from what the kernel holds."""

    value: Tensor
    error: Tensor

    x = None
    e = None

    @property
    def shape(self) -> torch.Size:
        return self.value.shape

    @property
    def requires_grad(self) -> bool:
        return False

    def numel(self) -> int:
        return self.value.numel()

    def map(self, fn: Callable[[Tensor], Tensor]) -> Bounded:
        return Bounded(fn(self.value), fn(self.error))

    @staticmethod
    def combine(fn: Callable[[Sequence[Tensor]], Tensor], values: Sequence[Bounded]) -> Bounded:
        return Bounded(fn([v.value for v in values]), fn([v.error for v in values]))


class Bound(Domain):
    """One run. Inputs are exact. ``unit``: the rounding of every type (float64's own, to bound what float64 loses)
    in place of each type's."""

    name = "bound"

    def __init__(self, unit: float | None = None):
        super().__init__()
        self.one = unit

    def unit(self, elem: str) -> float:
        """One rounding to a type."""
        return UNIT.get(elem, UNIT["f32"]) if self.one is None else self.one

    def input(self, values: Tensor) -> Bounded:
        """An input: exact, or with float64's own rounding where that is what is bounded."""
        wide = values.double()
        return Bounded(wide, torch.zeros_like(wide) if self.one is None else self.one * torch.nan_to_num(wide).abs())

    def exact(self, values: Tensor) -> Bounded:
        wide = values.double()
        return Bounded(wide, torch.zeros_like(wide))

    def constant(self, value: float, t: Type, where: str) -> Bounded:
        meant, off = value, 0.0
        if math.isfinite(value):
            found = number(value, t.elem)
            meant, off = found.value, abs(found.value * (found.error if self.one is None else self.one))
        return Bounded(torch.tensor([meant], dtype=torch.float64), torch.tensor([off], dtype=torch.float64))

    def poison(self, t: Type, shape: tuple[int, ...], where: str) -> Bounded:
        return self.exact(torch.full(shape, math.nan, dtype=torch.float64))

    def rounded(self, value: Tensor, error: Tensor, roundings: float, elem: str) -> Bounded:
        """``value`` after so many roundings to a type; infinities are exact."""
        error = error + roundings * self.unit(elem) * value.abs()
        return Bounded(value, torch.where(torch.isfinite(value), error, torch.zeros_like(value)))

    # -- computing
    def apply(self, name: str, t: Type, args: tuple[Any, ...], where: str) -> Bounded:
        fn = FUNCTIONS.get(name)
        if fn is None or name == "rem":
            raise Unsupported(f"{name} in the bound domain", where=where)
        if name in STEPS:
            return _stepped(fn, args[0])
        value, error = _passed_on(fn, args)
        roundings = 0.0 if name in EXACT else 1.0 if name in ONE else ELEMENTARY
        return self.rounded(value, error, roundings, t.elem)

    def compare(self, predicate: str, a: Bounded, b: Bounded, where: str) -> Tensor:
        return compare(predicate, a.value, b.value)

    def classify(self, name: str, a: Bounded, where: str) -> Tensor:
        return getattr(torch, name)(a.value)

    def key(self, v: Bounded) -> Tensor:
        """A tensor whose order is the order of the values."""
        return v.value

    def select(self, mask: Tensor, a: Bounded, b: Bounded) -> Bounded:
        return Bounded.combine(lambda ts: torch.where(mask, ts[0], ts[1]), [a, b])

    def cast(self, x: Bounded, source: Type, target: Type, rounding: str, where: str) -> Bounded:
        if bits(target.elem) >= bits(source.elem):
            return x
        self.ledger.cast(where, source.elem, target.elem, x.numel())
        return self.rounded(x.value, x.error, 2.0 if rounding == "rtz" else 1.0, target.elem)

    def from_int(self, x: Tensor, signed: bool, source: Type, target: Type, where: str) -> Bounded:
        wide = Machine().from_int(x, signed, source, Type("f64", target.shape), where)
        few = wide.abs() <= 1 / self.unit(target.elem)
        made = self.rounded(wide, torch.zeros_like(wide), 1.0, target.elem)
        return Bounded(wide, torch.where(few, torch.zeros_like(wide), made.error))

    def to_int(self, x: Bounded, source: Type, target: Type, signed: bool, where: str) -> Tensor:
        return to_int(x.value, bits(target.elem), signed).to(INTS[target.elem])

    def dot(
        self, a: Bounded, b: Bounded, c: Bounded, ta: Type, tb: Type, t: Type, precision: str, where: str
    ) -> Bounded:
        size = a.value.abs() @ b.value.abs()
        error = a.error @ b.value.abs() + a.value.abs() @ b.error + c.error
        if precision == "tf32" and self.one is None:
            error = error + 2 * TF32 * size
        summed = a.value.shape[-1] * self.unit(t.elem) * (size + c.value.abs())
        return self.rounded(a.value @ b.value + c.value, error + summed, 1.0, t.elem)

    # -- memory
    def take(self, storage: Bounded, index: Tensor) -> Bounded:
        return storage.map(lambda t: t.index_select(0, index))

    def put(self, storage: Bounded, index: Tensor, values: Bounded) -> Bounded:
        storage.value, storage.error = storage.value.clone(), storage.error.clone()
        storage.value[index], storage.error[index] = values.value, values.error
        return storage

    def add_at(self, storage: Bounded, index: Tensor, values: Bounded, t: Type) -> Bounded:
        """In any order: as many roundings of the sum of sizes as there are additions."""
        value = storage.value.index_add(0, index, values.value)
        size = storage.value.abs().index_add(0, index, values.value.abs())
        times = torch.zeros_like(value).index_add_(0, index, torch.ones_like(values.value))
        error = storage.error.index_add(0, index, values.error)
        return Bounded(value, error + times * self.unit(t.elem) * size)

    def cast_storage(self, storage: Any, elem: str, name: str) -> Bounded:
        return self.exact(storage) if isinstance(storage, Tensor) else Bounded(storage.value, storage.error)

    def equal(self, a: Bounded, b: Bounded) -> Tensor:
        return a.value == b.value


def _stepped(fn: Callable[..., Tensor], x: Bounded) -> Bounded:
    """A function of steps: exact, but where the argument's error reaches another step."""
    value = fn(x.value)
    ends = [(fn(x.value + side * x.error) - value).abs() for side in (-1, 1)]
    return Bounded(value, torch.where(torch.isfinite(value), torch.maximum(*ends), torch.zeros_like(value)))


def _passed_on(fn: Callable[..., Tensor], args: tuple[Bounded, ...]) -> tuple[Tensor, Tensor]:
    """A function's value, and its arguments' errors through its partial derivatives."""
    shape = torch.broadcast_shapes(*(a.shape for a in args))
    with torch.enable_grad():
        xs = [a.value.expand(shape).detach().clone().requires_grad_(True) for a in args]
        value = fn(*xs)
        slopes = torch.autograd.grad(value.sum(), xs, allow_unused=True) if value.requires_grad else [None] * len(xs)
    error = torch.zeros(value.shape, dtype=torch.float64)
    for a, slope in zip(args, slopes, strict=True):
        if slope is not None:
            error = error + torch.where(a.error == 0, torch.zeros_like(error), slope.abs() * a.error)
    return value.detach(), error
