"""The number systems that two formulas are compared in: domains of ``ir/domains`` with what a comparison adds to
them."""

from __future__ import annotations

from typing import Any

import torch

from ..ir.domains.field import Field
from ..ir.domains.real import Real
from ..ir.program import Type
from .branches import Sites

A_CALL = 2000


class Draw(Field):
    """A field that notes which functions it was asked for. ``work``: what it took, in elements, and the same on every
    machine: a call costs as much as ``A_CALL`` elements."""

    def __init__(self, seed: int):
        super().__init__(seed)
        self.asked: set[str] = set()
        self.work = 0

    def apply(self, name: str, t: Type, args: tuple[Any, ...], where: str) -> Any:
        self.asked.add(name)
        out = super().apply(name, t, args, where)
        self.work += A_CALL + out.p.numel()
        return out

    def dot(self, a: Any, b: Any, c: Any, *rest: Any) -> Any:
        out = super().dot(a, b, c, *rest)
        self.work += A_CALL + out.p.numel() * a.p.shape[-1] // 16
        return out


class Numbers(Real):
    """Real arithmetic in which undefined memory holds arbitrary numbers: what depends on it differs from call to
    call."""

    def __init__(self) -> None:
        super().__init__()
        self.undefined = torch.Generator().manual_seed(1)  # the same in each run, so that it is no noise

    def poison(self, t: Type, shape: tuple[int, ...], where: str) -> torch.Tensor:
        return torch.randn(shape, generator=self.undefined, dtype=torch.float64)


class Watching(Numbers):
    """Notes comparisons that come out alike for all elements."""

    def __init__(self) -> None:
        super().__init__()
        self.sites = Sites()

    def compare(self, predicate: str, a: torch.Tensor, b: torch.Tensor, where: str) -> torch.Tensor:
        out = super().compare(predicate, a, b, where)
        self.sites.saw(predicate, a, b, where, out)
        return out
