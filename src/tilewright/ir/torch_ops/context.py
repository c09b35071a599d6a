"""What rules compute with: Values, and the domain's arithmetic on whole tensors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ...errors import Unsupported
from ..domains.base import Domain
from ..program import Type
from ..values import ELEM, FLOATS, struct, struct_n

TORCH_FLOATS = frozenset(FLOATS.values())


@dataclass(frozen=True)
class Value:
    """A tensor in a domain: ``data`` is the domain's floats, or a plain tensor for integers and booleans."""

    data: Any
    dtype: torch.dtype

    @property
    def shape(self) -> torch.Size:
        return self.data.shape

    @property
    def is_float(self) -> bool:
        return self.dtype in TORCH_FLOATS

    def dim(self) -> int:
        return len(self.data.shape)


@dataclass(frozen=True)
class Expected:
    """Sizes and dtype of a result."""

    shape: tuple[int, ...]
    dtype: torch.dtype


class Context:
    """The domain, as rules see it. ``where``: the source line; ``out``: what the operation is to give."""

    def __init__(self, domain: Domain):
        self.domain = domain
        self.where = ""
        self.out: tuple[Expected, ...] = ()

    # -- making floats
    def number(self, v: float) -> Any:
        """A Python number as a float without dimensions."""
        one = self.domain.constant(float(v), Type("f64"), self.where)
        return struct(one, lambda t: t.reshape(()))

    def lift(self, a: Any) -> Any:
        """Anything numeric as the domain's floats."""
        if not isinstance(a, Value):
            return self.number(a) if isinstance(a, bool | int | float) else a
        if a.is_float:
            return a.data
        if a.dtype.is_complex:
            raise Unsupported(f"{a.dtype} in the {self.domain.name} domain", where=self.where)
        if a.dtype == torch.bool:
            return self.domain.from_int(a.data, False, Type("i1"), Type("f64"), self.where)
        signed = a.dtype not in (torch.uint8, torch.uint16, torch.uint32, torch.uint64)
        return self.domain.from_int(a.data, signed, Type(ELEM[a.dtype]), Type("f64"), self.where)

    def exact(self, t: Tensor) -> Any:
        """Given floats, exactly."""
        return self.domain.exact(t) if hasattr(self.domain, "exact") else t.double()

    def full(self, shape: Sequence[int], v: float) -> Any:
        return struct(self.number(v), lambda t: t.expand(tuple(shape)))

    # -- computing
    def apply(self, name: str, *args: Any) -> Any:
        """An elementwise function of the domain; sizes broadcast."""
        elem = ELEM.get(self.out[0].dtype, "f64") if self.out else "f64"
        return self.domain.apply(
            name, Type(elem if elem in FLOATS else "f64"), tuple(self.lift(a) for a in args), self.where
        )

    def compare(self, predicate: str, a: Any, b: Any) -> Tensor:
        return self.domain.compare(predicate, self.lift(a), self.lift(b), self.where)

    def select(self, mask: Tensor, a: Any, b: Any) -> Any:
        return self.domain.select(mask, self.lift(a), self.lift(b))

    def dot(self, a: Any, b: Any) -> Any:
        """Product over the last two axes; leading axes broadcast."""
        a, b = self.lift(a), self.lift(b)
        if a.shape[-1] == 0:
            lead = torch.broadcast_shapes(a.shape[:-2], b.shape[:-2])
            return self.full((*lead, a.shape[-2], b.shape[-1]), 0.0)
        zero = struct(self.number(0.0), lambda t: t.reshape((1,) * len(a.shape)))
        t = Type("f32")
        return self.domain.dot(a, b, zero, t, t, t, "ieee", self.where)

    def order(self, x: Any) -> Tensor:
        """A plain tensor whose order is the order of the values (NaN where a value is NaN)."""
        if isinstance(x, Tensor):
            return x.detach()
        if x.x is not None:
            return x.x
        if x.e is not None:
            raise Unsupported("the order of logarithms in the field domain", where=self.where)
        return self.domain.key(x)  # type: ignore[attr-defined]

    # -- reducing
    def fold(self, name: str, x: Any, dims: Sequence[int], keepdim: bool, empty: float | None = None) -> Any:
        """``x`` combined over ``dims`` by an associative function, as a halving tree."""
        x = self.lift(x)
        rank = len(x.shape)
        dims = sorted({d % rank for d in dims}) if rank else []
        kept = [d for d in range(rank) if d not in dims]
        kept_sizes = [x.shape[d] for d in kept]
        count = math.prod(x.shape[d] for d in dims)
        if count == 0:
            if empty is None:
                raise Unsupported(f"{name} over nothing", where=self.where)
            out = self.full(kept_sizes, empty)
        elif isinstance(x, Tensor) and name in _DIRECT and dims:
            out = _DIRECT[name](x, dims)
        else:
            flat = struct(x, lambda t: t.permute(*kept, *dims).reshape(*kept_sizes, count))
            out = struct(self.halve(name, flat), lambda t: t.reshape(kept_sizes))
        if keepdim:
            sizes = [1 if d in dims else x.shape[d] for d in range(rank)]
            out = struct(out, lambda t: t.reshape(sizes))
        return out

    def halve(self, name: str, x: Any) -> Any:
        """The last axis combined to one element."""
        while (n := x.shape[-1]) > 1:
            half = n // 2
            left = struct(x, lambda t: t[..., :half])  # noqa: B023
            right = struct(x, lambda t: t[..., half : 2 * half])  # noqa: B023
            both = self.apply(name, left, right)
            if n % 2:
                rest = struct(x, lambda t: t[..., 2 * half :])  # noqa: B023
                both = struct_n([both, rest], lambda ts: torch.cat([*ts], -1))
            x = both
        return x


_DIRECT = {"add": lambda x, d: torch.sum(x, d), "maximum": lambda x, d: torch.amax(x, d),
           "minimum": lambda x, d: torch.amin(x, d)}  # fmt: skip


def every_dim(x: Value, dim: Any) -> list[int]:
    """A dim argument of aten as a list; none or empty means all."""
    if dim is None or (isinstance(dim, list | tuple) and not dim):
        return list(range(x.dim()))
    return [dim] if isinstance(dim, int) else list(dim)
