"""A number of the field domain: residues in two rings, and what else is known of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from ...errors import Unsupported
from . import residues


@dataclass(slots=True)
class FieldValue:
    """``p`` is the value modulo P, ±inf, or NaN. ``q`` is the value modulo Q (NaN where unknown; None: nowhere known).
    ``e``, where there is one, is the value's exponential modulo P to ``base`` (``e`` or ``2``, or ``e²`` and ``2²`` for
    the exponential's square, which is what is known of a logarithm times a number); an entry with NaN in
    ``p`` and a residue in ``e`` is a logarithm, with NaN in both it is NaN. ``x`` is the true number where the value
    comes from constants and integers alone; ``k`` a cached order key; ``special`` says that infinities may occur."""

    p: Tensor
    q: Tensor | None
    e: Tensor | None = None
    base: str = ""
    x: Tensor | None = None
    k: Tensor | None = None
    special: bool = False

    @property
    def shape(self) -> torch.Size:
        return self.p.shape

    @property
    def requires_grad(self) -> bool:
        return False

    def numel(self) -> int:
        return self.p.numel()

    def map(self, fn: Callable[[Tensor], Tensor]) -> FieldValue:
        def each(t: Tensor | None) -> Tensor | None:
            return None if t is None else fn(t)

        return FieldValue(fn(self.p), each(self.q), each(self.e), self.base, each(self.x), each(self.k), self.special)

    @staticmethod
    def combine(fn: Callable[[Sequence[Tensor]], Tensor], values: Sequence[FieldValue]) -> FieldValue:
        base = shared_base(values)
        special = any(v.special for v in values)

        def some(parts: list[Tensor | None]) -> Tensor | None:
            if all(t is None for t in parts):
                return None
            return fn([unknown(v.p) if t is None else t for t, v in zip(parts, values, strict=True)])

        def every(parts: list[Tensor | None]) -> Tensor | None:
            known = [t for t in parts if t is not None]
            return fn(known) if len(known) == len(parts) else None

        q, e = some([v.q for v in values]), some([to_base(v, base) for v in values])
        x, k = every([v.x for v in values]), every([v.k for v in values])
        return FieldValue(fn([v.p for v in values]), q, e, base, x, k, special)


def unknown(like: Tensor) -> Tensor:
    """NaN in the shape of ``like``, as a view."""
    return torch.full((1,) * like.dim(), float("nan"), dtype=torch.float64).expand(like.shape)


SQUARED = "²"


def shared_base(values: Sequence[FieldValue], where: str = "") -> str:
    """The one base of the values' exponentials; Unsupported where natural and binary logarithms meet."""
    bases = {v.base for v in values if v.e is not None}
    plain = {b.rstrip(SQUARED) for b in bases}
    if len(plain) > 1:
        raise Unsupported("natural and binary logarithms meet in the field domain", where=where or None)
    return plain.pop() + (SQUARED if any(b.endswith(SQUARED) for b in bases) else "") if plain else ""


def to_base(v: FieldValue, base: str) -> Tensor | None:
    """``v.e`` in ``base``: squared where that asks for it."""
    if v.e is None or v.base == base:
        return v.e
    if base != v.base + SQUARED:
        raise Unsupported("the exponential of a logarithm that was scaled", detail=f"{v.base} as {base}")
    return residues.mul(v.e, v.e, residues.P)
