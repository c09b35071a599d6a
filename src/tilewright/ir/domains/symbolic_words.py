"""Where two formulas begin to differ, in a person's words.

Both sides are terms of one run (``symbolic.py``) over the same inputs. Sub-terms are compared by their values, which
are generic numbers: by enclosures where python-flint is there, else in float64. From the results downwards, what both
sides share is put aside: the same function of unlike arguments, the same factors, the same addends (also of a sum that
one side has multiplied out); what is left is the difference.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

from ...errors import EnvironmentProblem, Unsupported
from . import ball
from .symbolic import Symbolic
from .symbolic_text import LARGEST, PRODUCTS, SUMS, TOO_LARGE, Reading, Term

CLOSE, CLOSE_EXACT = 1e-12, 1e-25
BITS = 256
MOST_TERMS = 4096
MOST_STEPS = 60
MOST_PAIRS = 512


@dataclass(frozen=True)
class Words:
    """``text``: what the kernel does and the reference does not; ``where``: the kernel's line."""

    text: str
    where: str = ""


class Comparison:
    """Kernel and reference of one output element."""

    def __init__(self, domain: Symbolic, kernel: int, reference: int):
        self.kernel, self.reference = kernel, reference
        self.mine = set(domain.needed(kernel))
        self.reading = Reading(domain.needed(kernel, reference))
        self.nodes = self.reading.nodes
        self.values, self.exact = self._values()
        self.steps = 0

    def _values(self) -> tuple[dict[int, Any], bool]:
        try:
            return ball.evaluate_all(self.nodes, BITS), True
        except (Unsupported, EnvironmentProblem):
            return {i: n.value for i, n in self.nodes.items()}, False

    # -- comparing by value
    def close(self, a: Any, b: Any) -> bool:
        size = max(abs(float(a)), abs(float(b)))
        gap = abs(a - b)
        return float(gap.abs_upper()) <= CLOSE_EXACT * size if self.exact else gap <= CLOSE * size

    def same(self, i: int, j: int) -> bool:
        return i == j or self.close(self.values[i], self.values[j])

    def worth(self, t: Term) -> Any:
        """The value of a product."""
        out: Any = t.sign
        for f in t.top:
            out = out * self.values[f]
        for f in t.bottom:
            out = out / self.values[f]
        return out

    def unmatched(self, ours: Sequence[Any], theirs: Sequence[Any], value: Any) -> tuple[list[Any], list[Any]]:
        """What is left of both once equals are taken away in pairs."""
        shelf: dict[str, list[Any]] = {}
        for t in theirs:
            shelf.setdefault(_label(value(t)), []).append(t)
        left = []
        for k in ours:
            v = value(k)
            found = next((shelf[n] for n in _labels(v) if any(self.close(v, value(t)) for t in shelf.get(n, ()))), None)
            if found is None:
                left.append(k)
            else:
                found.remove(next(t for t in found if self.close(v, value(t))))
        return left, [t for rest in shelf.values() for t in rest]

    # -- descending
    def words(self) -> Words:
        """The first difference. Raises Unsupported where no term differs as far as can be told."""
        with ball.precision(BITS) if self.exact else nullcontext():
            if self.same(self.kernel, self.reference):
                raise Unsupported("both sides have the same value at this element")
            return self.differ(self.kernel, self.reference)

    def differ(self, k: int, r: int) -> Words:
        self.steps += 1
        nk, nr = self.nodes[k], self.nodes[r]
        if self.steps < MOST_STEPS:
            if nk.op == nr.op and nk.op not in (*SUMS, *PRODUCTS) and nk.args and len(nk.args) == len(nr.args):
                found = self.extreme(k, r) if nk.op in LARGEST else self.inside(nk.args, nr.args)
                if found is not None:
                    return found
            products = self.reading.multiplies(k) or self.reading.multiplies(r)
            if products:
                found = self.factors(self.reading.product(k), self.reading.product(r), (k, r))
                if found is not None:
                    return found
            if products or nk.op in SUMS or nr.op in SUMS:
                found = self.addends(k, r)
                if found is not None:
                    return found
        return self.instead(self.text(k), self.text(r), nk.where)

    def inside(self, ours: Sequence[int], theirs: Sequence[int]) -> Words | None:
        pair = next(((a, b) for a, b in zip(ours, theirs, strict=True) if not self.same(a, b)), None)
        return None if pair is None else self.differ(*pair)

    def extreme(self, k: int, r: int) -> Words | None:
        word, where = LARGEST[self.nodes[k].op], self.nodes[k].where
        ours, theirs = self.unmatched(self.reading.extremes(k), self.reading.extremes(r), self.values.__getitem__)
        if len(ours) == len(theirs) == 1:
            return self.differ(ours[0], theirs[0])
        if ours and not theirs:
            return Words(
                f"the kernel's {word} includes {self.text(ours[0])}{_more(ours)}, the reference's does not", where
            )
        if theirs and not ours:
            return Words(f"the kernel's {word} leaves out {self.text(theirs[0])}{_more(theirs)}", where)
        return None

    def factors(self, k: Term, r: Term, whole: tuple[int, int] | None) -> Words | None:
        """Two products: what is left of them once common factors are taken away."""
        up_k, up_r = self.unmatched(k.top, r.top, self.values.__getitem__)
        low_k, low_r = self.unmatched(k.bottom, r.bottom, self.values.__getitem__)
        sizes = (len(up_k), len(up_r), len(low_k), len(low_r))
        alike = 0 < len(up_k) == len(up_r) and all(self.same(u[0], i) for u in (up_k, up_r) for i in u)
        if alike and not low_k and not low_r and whole != (up_k[0], up_r[0]):
            return self.differ(up_k[0], up_r[0])
        if sizes == (0, 0, 1, 1):
            return self.differ(low_k[0], low_r[0])
        shared = len(k.top) + len(k.bottom) > len(up_k) + len(low_k)
        if sum(sizes) == 0 and k.sign != r.sign:
            return Words("the kernel has the opposite sign of the reference", k.where)
        if sum(sizes) == 0 or not (shared or sum(sizes) <= 2) or any(self.nodes[i].op in SUMS for i in (*up_k, *up_r)):
            return None
        ours = self.reading.term(Term(1, tuple(up_k), tuple(low_k), ""))
        theirs = self.reading.term(Term(1, tuple(up_r), tuple(low_r), ""))
        if not up_r and not low_r:
            return Words(f"the kernel multiplies by {ours}, the reference does not", k.where)
        if not up_k and not low_k:
            return Words(f"the kernel leaves out the factor {theirs}", k.where)
        return self.instead(ours, theirs, k.where)

    def addends(self, k: int, r: int) -> Words | None:
        """Two sums: what is left of them, as they are written or multiplied out."""
        plain = [self.reading.sum(i) for i in (k, r)]
        ours, theirs = self.unmatched(plain[0], plain[1], self.worth)
        if ours and theirs and (len(ours) > 1 or len(theirs) > 1):
            try:
                wide = [self.expand(t) for t in plain]
                more = self.unmatched(wide[0], wide[1], self.worth)
            except Unsupported:
                more = (ours, theirs)
            if (
                min(map(len, more)) == 0
                or sum(map(len, more)) < sum(map(len, (ours, theirs)))
                or len(more[0]) == len(more[1])
            ):
                ours, theirs = more
        return self.told(ours, theirs, k, r, len(plain[0]))

    def told(self, ours: list[Term], theirs: list[Term], k: int, r: int, size: int) -> Words | None:
        if ours and not theirs:
            to = f" to {self.text(r)}" if size > len(ours) else ""
            sign = "adds" if ours[0].sign > 0 else "subtracts"
            return Words(f"the kernel {sign} {self.addend(ours)}{to}; the reference does not", ours[0].where)
        if theirs and not ours:
            if not size:
                return self.instead("0", self.text(r), self.nodes[k].where)
            return Words(f"the kernel leaves out {self.addend(theirs)} of {self.text(r)}", self.nodes[k].where)
        if not ours:
            return None
        a, b = self.nearest(ours, theirs)
        if len(ours) > 1 or len(theirs) > 1 or len(a.top) + len(a.bottom) > 1:
            found = self.factors(a, b, (k, r))
            if found is not None:
                return found
        elif len(a.top) == len(b.top) == 1 and not a.bottom and not b.bottom and (a.top[0], b.top[0]) != (k, r):
            return self.differ(a.top[0], b.top[0])
        return self.instead(self.reading.total([a]), self.reading.total([b]), a.where)

    def addend(self, terms: list[Term]) -> str:
        """Several addends of one sign, folded."""
        sign = terms[0].sign
        text = self.reading.total([Term(t.sign * sign, t.top, t.bottom, t.where) for t in terms])
        return text if text != TOO_LARGE else f"{len(terms)} terms (too large to show)"

    def nearest(self, ours: list[Term], theirs: list[Term]) -> tuple[Term, Term]:
        """The pair that has most factors in common."""
        a = ours[0]

        def unlike(b: Term) -> int:
            return sum(map(len, (*self.unmatched(a.top, b.top, self.values.__getitem__),
                                 *self.unmatched(a.bottom, b.bottom, self.values.__getitem__))))  # fmt: skip

        return a, min(theirs[:MOST_PAIRS], key=unlike)

    def expand(self, terms: Sequence[Term]) -> list[Term]:
        """Sums among the factors multiplied out. Raises Unsupported beyond ``MOST_TERMS``."""
        found, todo = [], list(reversed(terms))
        while todo:
            t = todo.pop()
            at = next((i for i, f in enumerate(t.top) if self.nodes[f].op in SUMS), None)
            if at is None:
                found.append(t)
            else:
                rest = Term(t.sign, t.top[:at] + t.top[at + 1 :], t.bottom, t.where)
                todo += [rest.times(x) for x in reversed(self.reading.sum(t.top[at]))]
            if len(found) + len(todo) > MOST_TERMS:
                raise Unsupported(f"a sum of more than {MOST_TERMS} terms")
        return found

    def text(self, i: int) -> str:
        return self.reading.text(i)

    def instead(self, ours: str, theirs: str, where: str) -> Words:
        if ours == theirs == TOO_LARGE:
            return Words("kernel and reference differ in a term too large to show", where)
        return Words(f"the kernel has {ours} where the reference has {theirs}", where)


def _more(items: Sequence[Any]) -> str:
    return f" and {len(items) - 1} more" if len(items) > 1 else ""


def _label(v: Any) -> str:
    return f"{float(v):.9e}"


def _labels(v: Any) -> tuple[str, ...]:
    """Labels of a value and of its neighbours, since rounding may part equals."""
    x = float(v)
    return tuple(dict.fromkeys((_label(x), _label(x * (1 + 2e-10)), _label(x * (1 - 2e-10)))))
