"""What the evaluator computes with: integer tensors, pointers, descriptors, and the domain's floats.

Every value has a leading axis of lanes (one lane a program): size 1 where all programs agree, else one entry a lane.
Integers are torch tensors of their exact width (``i1`` is bool, unsigned is a way of reading). Floats are whatever the
domain says: a tensor, or an object with ``map``, ``combine`` and ``shape``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ..errors import Unsupported

INTS = {"i1": torch.bool, "i8": torch.int8, "i16": torch.int16, "i32": torch.int32, "i64": torch.int64,
        "index": torch.int64}  # fmt: skip
FLOATS = {"f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32, "f64": torch.float64,
          "f8E4M3FN": torch.float8_e4m3fn, "f8E5M2": torch.float8_e5m2, "f8E4M3FNUZ": torch.float8_e4m3fnuz,
          "f8E5M2FNUZ": torch.float8_e5m2fnuz}  # fmt: skip
WIDTH = {"i1": 1, "i8": 8, "i16": 16, "i32": 32, "i64": 64, "index": 64, "f16": 16, "bf16": 16, "f32": 32, "f64": 64,
         "f8E4M3FN": 8, "f8E5M2": 8, "f8E4M3FNUZ": 8, "f8E5M2FNUZ": 8, "f8E4M3B11FNUZ": 8}  # fmt: skip
ELEM = {torch.float16: "f16", torch.bfloat16: "bf16", torch.float32: "f32", torch.float64: "f64",
        torch.float8_e4m3fn: "f8E4M3FN", torch.float8_e5m2: "f8E5M2", torch.float8_e4m3fnuz: "f8E4M3FNUZ",
        torch.float8_e5m2fnuz: "f8E5M2FNUZ", torch.int8: "i8", torch.uint8: "i8", torch.bool: "i8",
        torch.int16: "i16", torch.uint16: "i16", torch.int32: "i32", torch.uint32: "i32", torch.int64: "i64",
        torch.uint64: "i64"}  # fmt: skip


def bits(elem: str) -> int:
    """Width in bits of an element type; pointers have 64. Raises Unsupported for others."""
    if elem in WIDTH:
        return WIDTH[elem]
    if elem.startswith("ptr"):
        return 64
    raise Unsupported(f"element type {elem}")


def nbytes(elem: str) -> int:
    """Bytes an element takes in memory."""
    return max(1, bits(elem) // 8)


def int_dtype(elem: str) -> torch.dtype:
    """Torch dtype of an integer element type."""
    try:
        return INTS[elem]
    except KeyError:
        raise Unsupported(f"integer type {elem}") from None


@dataclass(frozen=True, slots=True)
class Ptr:
    """Addresses: ``buf`` is the buffer's number (or a tensor of numbers where programs differ), ``off`` int64 offsets
    from the buffer's start, in elements of ``elem``."""

    buf: int | Tensor
    off: Tensor
    elem: str

    @property
    def shape(self) -> torch.Size:
        return self.off.shape

    def map(self, fn: Callable[[Tensor], Tensor]) -> Ptr:
        return Ptr(self.buf if isinstance(self.buf, int) else fn(self.buf), fn(self.off), self.elem)

    @staticmethod
    def combine(fn: Callable[[Sequence[Tensor]], Tensor], values: Sequence[Ptr]) -> Ptr:
        off = fn([v.off for v in values])
        numbers = {v.buf for v in values if isinstance(v.buf, int)}
        if len(numbers) == 1 and all(isinstance(v.buf, int) for v in values):
            return Ptr(values[0].buf, off, values[0].elem)
        return Ptr(fn([v.buf_tensor() for v in values]), off, values[0].elem)

    def buf_tensor(self) -> Tensor:
        """Buffer numbers in the shape of the offsets."""
        return torch.full_like(self.off, self.buf) if isinstance(self.buf, int) else self.buf


@dataclass(frozen=True, slots=True)
class Desc:
    """Tensor descriptor: base pointer (one a lane), ``shape`` and ``strides`` in elements, ``block`` static."""

    base: Ptr
    sizes: tuple[Tensor, ...]
    strides: tuple[Tensor, ...]
    block: tuple[int, ...]
    padding: str = "zero"

    @property
    def shape(self) -> torch.Size:
        lead = max(t.shape[0] for t in (self.base.off, *self.sizes, *self.strides))
        return torch.Size((lead,))

    def map(self, fn: Callable[[Tensor], Tensor]) -> Desc:
        """Only lane selection reaches descriptors; components that all lanes share stay as they are."""
        lead = self.shape[0]

        def each(t: Tensor) -> Tensor:
            return t if t.shape[0] == 1 and lead > 1 else fn(t)

        base = Ptr(self.base.buf if isinstance(self.base.buf, int) else each(self.base.buf), each(self.base.off),
                   self.base.elem)  # fmt: skip
        return Desc(base, tuple(map(each, self.sizes)), tuple(map(each, self.strides)), self.block, self.padding)

    @staticmethod
    def combine(fn: Callable[[Sequence[Tensor]], Tensor], values: Sequence[Desc]) -> Desc:
        first = values[0]
        sizes = tuple(fn(list(c)) for c in zip(*(v.sizes for v in values), strict=True))
        strides = tuple(fn(list(c)) for c in zip(*(v.strides for v in values), strict=True))
        return Desc(Ptr.combine(fn, [v.base for v in values]), sizes, strides, first.block, first.padding)


def struct(value: Any, fn: Callable[[Tensor], Tensor]) -> Any:
    """``fn`` (a change of shape or a selection) on each tensor that ``value`` is made of."""
    return fn(value) if isinstance(value, Tensor) else value.map(fn)


def struct_n(values: Sequence[Any], fn: Callable[[Sequence[Tensor]], Tensor]) -> Any:
    """``fn`` (a joining of several tensors) on corresponding tensors of several values."""
    return fn(values) if isinstance(values[0], Tensor) else values[0].combine(fn, values)


def lanes_of(value: Any) -> int:
    """Size of the leading axis."""
    return value.shape[0]


def expand_lead(t: Tensor, n: int) -> Tensor:
    """``t`` with ``n`` lanes, as a view."""
    return t if t.shape[0] == n else t.expand(n, *t.shape[1:])


def merge(pieces: Sequence[tuple[Tensor, Any]], n: int) -> Any:
    """One value for ``n`` lanes from pieces (positions, value) that cover each lane once. Differentiable."""
    if len(pieces) == 1:
        return pieces[0][1]
    order = torch.argsort(torch.cat([rel for rel, _ in pieces]))

    def join(ts: Sequence[Tensor]) -> Tensor:
        parts = [expand_lead(t, len(rel)) for t, (rel, _) in zip(ts, pieces, strict=True)]
        return torch.cat(parts).index_select(0, order)

    return struct_n([v for _, v in pieces], join)
