"""One output element of two traces: enclosed rigorously, and put into words.

Float64 can't tell a difference of 1e-16 from its own roundings; an enclosure can. So a difference that stands out in
float64 counts once the enclosure of ``kernel - reference`` at that element excludes zero, and one whose enclosure is a
speck around zero is float64's own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import torch

from ..errors import EnvironmentProblem, Unsupported
from ..ir.domains.ball import SMALL, Ball, Late
from ..ir.domains.base import Domain
from ..ir.domains.symbolic import unravel
from ..ir.domains.symbolic_text import Reading
from ..ir.domains.symbolic_words import Comparison, Words
from ..ir.torch_ops.context import TORCH_FLOATS, Value

Both = Callable[[Domain, Mapping[str, Any]], tuple[dict[str, Value], dict[str, Value]]]


@dataclass
class Enclosure:
    """``status``: ``equal`` (the gap is at most ``relative`` of the reference), ``different`` (it is at least that), or
    ``undecided`` with a ``reason`` (``late``: the time was up). ``seen``: elements that were enclosed."""

    status: Literal["equal", "different", "undecided"]
    relative: float = 0.0
    output: str = ""
    index: tuple[int, ...] = ()
    reason: str = ""
    kernel: float = 0.0
    reference: float = 0.0
    seen: int = 0
    late: bool = False


class Elements:
    """Both programs as terms on one set of inputs. ``both`` runs them in a domain; ``seconds`` limits all enclosures
    together: what it cuts off is undecided."""

    def __init__(self, both: Both, inputs: Mapping[str, torch.Tensor], seconds: float = math.inf):
        self.domain = Ball(seconds)
        floats = {n: self.domain.input(n, t) for n, t in inputs.items() if t.dtype in TORCH_FLOATS}
        self.kernel, self.reference = both(self.domain, floats)
        self._doubt: str | None = None

    def roots(self, output: str, index: tuple[int, ...]) -> tuple[int, int]:
        """Node numbers of one element of kernel and reference."""
        if not self.kernel[output].is_float or not self.reference[output].is_float:
            raise Unsupported(f"'{output}' holds integers")
        return int(self.kernel[output].data.ids[index]), int(self.reference[output].data.ids[index])

    def enclose(self, output: str, index: tuple[int, ...]) -> Enclosure:
        """Are both the same real number at one element? Never raises for what can't be enclosed."""
        try:
            if self._doubt is None:
                self._doubt = self.domain.doubtful()
            if self._doubt:
                return Enclosure("undecided", output=output, index=index, reason=self._doubt)
            return self._enclose(output, index)
        except (Unsupported, EnvironmentProblem) as e:
            return Enclosure("undecided", output=output, index=index, reason=e.what, late=isinstance(e, Late))

    def _enclose(self, output: str, index: tuple[int, ...]) -> Enclosure:
        k, r = self.roots(output, index)
        if k == r:
            return Enclosure("equal", 0.0, output, index)
        gap, exact = self.domain.gap_and(k, r)
        size = abs(float(exact))
        if not gap.is_finite() or not math.isfinite(size):
            return Enclosure("undecided", output=output, index=index, reason="no finite number there")
        if not gap.contains(0):
            far = float(gap.abs_lower()) / max(size, 1e-300)
            ours, theirs = (self.domain.node(i).value for i in (k, r))
            return Enclosure("different", far, output, index, kernel=ours, reference=theirs)
        most = float(gap.abs_upper())
        if most > SMALL * size and most > 1e-300:
            return Enclosure("undecided", output=output, index=index, reason="an enclosure that stays wide")
        return Enclosure("equal", most / size if size else 0.0, output, index)

    def apart(self, least: float, most: int) -> list[tuple[str, tuple[int, ...]]]:
        """The elements that differ most in float64, relative to the reference (or to a thousandth of its scale)."""
        found = []
        for name, ours in self.reference.items():
            if not ours.is_float or not self.kernel[name].is_float or ours.data.numel() == 0:
                continue
            k, r = self.kernel[name].data.near, ours.data.near
            known = torch.isfinite(k) & torch.isfinite(r)
            scale = torch.where(known, r.abs(), torch.zeros_like(r)).mean()
            size = torch.maximum(r.abs(), scale * 1e-3).clamp_min(1e-300)
            relative = torch.where(known, (k - r).abs() / size, torch.zeros_like(r)).reshape(-1)
            top = relative.topk(min(most, relative.numel()))
            found += [(v, name, i, r.shape) for v, i in zip(top.values.tolist(), top.indices.tolist(), strict=True)]
        far = sorted((f for f in found if f[0] > least), key=lambda f: -f[0])[:most]
        return [(name, unravel(i, shape)) for _, name, i, shape in far]

    def worst(self, least: float, most: int = 4) -> Enclosure:
        """Of the elements furthest apart in float64, the one that is so in truth; else what is known of them."""
        for name, ours in self.reference.items():
            theirs = self.kernel[name]
            if ours.is_float != theirs.is_float or (not ours.is_float and not torch.equal(ours.data, theirs.data)):
                return Enclosure("undecided", output=name, reason=f"'{name}' holds other integers")
        seen = [Enclosure("equal")]
        for output, index in self.apart(least, most):
            seen.append(self.enclose(output, index))
        of = {status: [e for e in seen if e.status == status] for status in ("different", "undecided", "equal")}
        found = max(next(found for found in of.values() if found), key=lambda e: e.relative)
        return replace(found, seen=len(seen) - 1)

    def picked(self, number: int) -> Enclosure:
        """Any one element: the ``number``-th, counted around, of the results in turn."""
        floats = [n for n, v in self.reference.items() if v.is_float and v.data.numel()]
        if not floats:
            return Enclosure("undecided", reason="no float results")
        name = floats[number % len(floats)]
        shape = self.reference[name].data.shape
        return self.enclose(name, unravel(number * 7919 % shape.numel(), shape))

    def words(self, output: str, index: tuple[int, ...]) -> Words:
        """The first terms that differ at one element. Raises Unsupported where none can be told."""
        return Comparison(self.domain, *self.roots(output, index)).words()

    def formula(self, output: str, index: tuple[int, ...]) -> str:
        """The kernel's own element in words."""
        root, _ = self.roots(output, index)
        return Reading(self.domain.needed(root)).text(root)
