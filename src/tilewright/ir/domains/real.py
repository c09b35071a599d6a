"""Real domain: float64 without the kernel's roundings, differentiable with torch autograd.

Casts change nothing (the ledger keeps them); literals stand for the numbers that they round (constants.py).
Storages are copies in float64: outputs are read from ``Result.outputs``. Bits of a float are those of the nearest
value of its type (they carry no gradient).
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from ...errors import Unsupported
from ..program import Type
from ..values import FLOATS, INTS, bits
from . import magic
from .base import Domain
from .constants import number
from .machine import FUNCTIONS, Machine, compare, to_int


class Real(Domain):
    """``literals='exact'`` keeps each literal as the float that it is."""

    name = "real"

    def __init__(self, literals: str = "meant") -> None:
        super().__init__()
        self.literals = literals

    def constant(self, value: float, t: Type, where: str) -> Tensor:
        if math.isfinite(value) and self.literals == "meant":
            meant = number(value, t.elem)
            if meant.name:
                self.ledger.constant(where, meant.name, meant.error)
            value = meant.value
        return torch.tensor([value], dtype=torch.float64)

    def scalar(self, value: Any, t: Type) -> Any:
        return torch.tensor([float(value)], dtype=torch.float64) if isinstance(value, int | float) else value

    def poison(self, t: Type, shape: tuple[int, ...], where: str) -> Tensor:
        return torch.full(shape, math.nan, dtype=torch.float64)

    def apply(self, name: str, t: Type, args: tuple[Any, ...], where: str) -> Tensor:
        fn = FUNCTIONS.get(name)
        if fn is None:
            raise Unsupported(f"{name} in the real domain", where=where)
        for i, constant in enumerate(args[::-1] if name in ("add", "sub") else ()):
            if below := magic.limit(name, t.elem, constant.detach()):
                other = torch.where(args[i].detach().abs() < below, args[i].round(), args[i])
                return fn(*(other if j == i else a for j, a in enumerate(args)))
        return fn(*args)

    def compare(self, predicate: str, a: Tensor, b: Tensor, where: str) -> Tensor:
        return compare(predicate, a, b)

    def classify(self, name: str, a: Tensor, where: str) -> Tensor:
        return getattr(torch, name)(a)

    def cast(self, x: Tensor, source: Type, target: Type, rounding: str, where: str) -> Tensor:
        if bits(target.elem) < bits(source.elem):
            self.ledger.cast(where, source.elem, target.elem, x.numel())
        return x

    def from_int(self, x: Tensor, signed: bool, source: Type, target: Type, where: str) -> Tensor:
        return Machine().from_int(x, signed, source, Type("f64", target.shape), where)

    def to_int(self, x: Tensor, source: Type, target: Type, signed: bool, where: str) -> Tensor:
        return to_int(x.detach(), bits(target.elem), signed).to(INTS[target.elem])

    def to_bits(self, x: Tensor, source: Type, where: str) -> Tensor:
        self.ledger.cast(where, "f64", f"bits of {source.elem}", x.numel())
        return Machine().to_bits(x.detach().to(FLOATS[source.elem]), source, where)

    def from_bits(self, x: Tensor, target: Type, where: str) -> Tensor:
        return Machine().from_bits(x, target, where).double()

    def dot(self, a: Tensor, b: Tensor, c: Tensor, ta: Type, tb: Type, t: Type, precision: str, where: str) -> Tensor:
        return a @ b + c

    def put(self, storage: Tensor, index: Tensor, values: Tensor) -> Tensor:
        if storage.requires_grad or values.requires_grad:
            return storage.index_put((index,), values)
        storage[index] = values
        return storage

    def cast_storage(self, storage: Any, elem: str, name: str) -> Tensor:
        if storage.dtype == torch.float64 and storage.requires_grad:
            return storage
        return storage.double() if storage.dtype != torch.float64 else storage.clone()
