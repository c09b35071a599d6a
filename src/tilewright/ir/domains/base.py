"""Domain: what a float value is. Integers, pointers and control flow are the evaluator's and always concrete.

A float value is a tensor of lanes × tile, or an object with ``map``, ``combine`` and ``shape`` (values.py). The
defaults here serve domains whose floats are tensors. ``where`` is always the source line, for Unsupported.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ...errors import Unsupported
from ..program import Type
from ..records import Ledger


class Domain:
    """Base of all domains. A domain lives for one launch or several; ``ledger`` is set by the evaluator."""

    name = "domain"

    def __init__(self) -> None:
        self.ledger = Ledger()

    # -- making values
    def constant(self, value: float, t: Type, where: str) -> Any:
        """A float literal as a scalar of one lane: shape ``(1,)``."""
        raise NotImplementedError

    def poison(self, t: Type, shape: tuple[int, ...], where: str) -> Any:
        """Undefined values of ``shape``."""
        raise NotImplementedError

    def scalar(self, value: Any, t: Type) -> Any:
        """A scalar argument (a Python float, or the domain's own value) as shape ``(1,)``."""
        return self.constant(float(value), t, "argument") if isinstance(value, int | float) else value

    # -- computing
    def apply(self, name: str, t: Type, args: tuple[Any, ...], where: str) -> Any:
        """Float function ``name`` (``add``, ``exp``, ``maxnum`` …) with result type ``t``."""
        raise Unsupported(f"{name} in the {self.name} domain", where=where)

    def compare(self, predicate: str, a: Any, b: Any, where: str) -> Tensor:
        """MLIR's ``cmpf`` predicate as a bool tensor."""
        raise NotImplementedError

    def classify(self, name: str, a: Any, where: str) -> Tensor:
        """``isnan``, ``isinf``, ``isfinite``, ``signbit`` as a bool tensor."""
        raise Unsupported(f"{name} in the {self.name} domain", where=where)

    def select(self, mask: Tensor, a: Any, b: Any) -> Any:
        return torch.where(mask, a, b)

    def cast(self, x: Any, source: Type, target: Type, rounding: str, where: str) -> Any:
        raise NotImplementedError

    def from_int(self, x: Tensor, signed: bool, source: Type, target: Type, where: str) -> Any:
        raise NotImplementedError

    def to_int(self, x: Any, source: Type, target: Type, signed: bool, where: str) -> Tensor:
        raise Unsupported(f"float to integer conversion in the {self.name} domain", where=where)

    def to_bits(self, x: Any, source: Type, where: str) -> Tensor:
        raise Unsupported(f"bits of a float in the {self.name} domain", where=where)

    def from_bits(self, x: Tensor, target: Type, where: str) -> Any:
        raise Unsupported(f"float from bits in the {self.name} domain", where=where)

    def dot(self, a: Any, b: Any, c: Any, ta: Type, tb: Type, t: Type, precision: str, where: str) -> Any:
        """``a @ b + c`` over the last two axes, all with lanes in front."""
        raise NotImplementedError

    # -- memory: a storage is a one-dimensional value
    def take(self, storage: Any, index: Tensor) -> Any:
        """Elements of a storage at one-dimensional ``index``."""
        return storage.index_select(0, index)

    def put(self, storage: Any, index: Tensor, values: Any) -> Any:
        """Storage with elements replaced; may change it in place. The last of equal indices wins."""
        storage[index] = values
        return storage

    def add_at(self, storage: Any, index: Tensor, values: Any, t: Type) -> Any:
        """Storage with ``values`` added, in order, at indices that may repeat."""
        return storage.index_add(0, index, values)

    def cast_storage(self, storage: Any, elem: str, name: str) -> Any:
        """A caller's storage as this domain's: called once a launch for each float buffer."""
        return storage

    def equal(self, a: Any, b: Any) -> Tensor:
        """Elementwise identity (bits, where there are bits)."""
        return a == b
