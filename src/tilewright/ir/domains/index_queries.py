"""Questions to the solver about a walked launch: is every access within its storage, do two programs meet on an element,
at any size of the contract? An answer is a proof, a counterexample (sizes, program, element), or why there is neither.

Two programs: the second is a copy of the first with its own ids, positions and loop counters (after GPUVerify, Betts et
al. 2012). Offsets such as ``(row * N + column)`` are compared digit by digit where it is shown that the lower digit stays
below N: then equal offsets have equal digits, which spares the solver the products.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import z3

from ..program import Type
from ..values import nbytes
from . import index
from .index import AX, PID, conj, disj, whole
from .index_walk import Beyond, SymbolicLaunch, Touch, Walker, in_tile, within_grid

QUERY_MS = 400
SMALL = 1 << 13


@dataclass
class Answer:
    """``proved`` accesses (or pairs of them); ``shown``: a counterexample's ``sizes`` (by name), ``programs``, ``where``;
    ``left``: what was not decided, in words."""

    proved: int = 0
    shown: list[dict[str, Any]] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def whole(self) -> bool:
        """Everything was proved."""
        return not self.shown and not self.left


class Questions:
    """Asks about one launch. ``sizes``: the variables whose values make a counterexample; ``seconds``: for all
    questions together."""

    def __init__(self, launch: SymbolicLaunch, sizes: dict[str, Any], seconds: float):
        self.launch, self.sizes = launch, sizes
        self.until = time.monotonic() + seconds
        self.walker = Walker(launch)
        self.touches: list[Touch] = self.walker.run()

    # -- bounds
    def bounds(self) -> Answer:
        """Every access stays within its storage."""
        answer, started = Answer(), time.monotonic()
        for t in self.touches:
            if t.buf is None:
                answer.left.append(f"an address that may lie in several storages, at {short(t.where)}")
                continue
            outside = self.outside(t)
            if outside is False:
                answer.proved += 1
                continue
            self._decide(answer, t, conj(t.when, outside), in_tile(t.shape), (t,))
            if answer.shown:
                break
        answer.seconds = time.monotonic() - started
        return answer

    def outside(self, t: Touch) -> Any:
        """The condition that an access is before the start or past the end."""
        held = self.launch.storages[t.buf or 0].nbytes
        size = nbytes(t.elem)
        low = False if t.off.low >= 0 else whole(t.off.e) < 0
        return disj(low, False if (t.off.high + 1) * size <= held.low else (whole(t.off.e) + 1) * size > held.e)

    # -- races
    def races(self) -> Answer:
        """No two programs use one element, one of them writing it, unless both by atomics."""
        answer, started = Answer(), time.monotonic()
        if all(n.high <= 1 for n in self.launch.grid):
            return answer
        for a, b in self.pairs():
            if a.buf is None or b.buf is None or nbytes(a.elem) != nbytes(b.elem):
                answer.left.append(f"addresses of two kinds, at {short(a.where)}")
                continue
            self._decide(answer, a, *self.meeting(a, b), (a, b))
            if answer.shown:
                break
        answer.seconds = time.monotonic() - started
        return answer

    def pairs(self) -> Iterator[tuple[Touch, Touch]]:
        """Accesses that would race if two programs met in them."""
        for i, a in enumerate(self.touches):
            for b in self.touches[i:]:
                same = a.buf == b.buf or a.buf is None or b.buf is None
                writes = "store" in (a.kind, b.kind) or ("atomic" in (a.kind, b.kind) and a.kind != b.kind)
                if same and writes:
                    yield a, b

    def meeting(self, a: Touch, b: Touch) -> tuple[Any, list[Any]]:
        """The condition that two different programs meet in two accesses, and what holds of both."""
        renamed = twin(b)
        other = [z3.substitute(index.truth(e), renamed) for e in (*in_tile(b.shape), *within_grid(self.launch.grid))]
        apart = disj(*(PID[d] != z3.Int(f"qid{d}") for d, n in enumerate(self.launch.grid) if n.high > 1))
        first, second = self.digits(a), self.digits(b)
        if [s for s, _ in first[1:]] != [s for s, _ in second[1:]]:
            first, second = [(None, whole(a.off.e))], [(None, whole(b.off.e))]
        equal = [x == z3.substitute(y, renamed) for (_, x), (_, y) in zip(first, second, strict=True)]
        when = z3.substitute(index.truth(b.when), renamed)
        return conj(a.when, when, apart, *equal), [*in_tile(a.shape), *other]

    def digits(self, t: Touch) -> list[tuple[Any, Any]]:
        """An offset as (step's id, digit), highest first: the offset is the sum of digit times step, and each digit but
        the first stays below what the steps before it are multiples of."""
        terms = polynomial(z3.simplify(whole(t.off.e), som=True))
        found: list[tuple[Any, Any]] = []
        for step in self.steps(terms):
            high, low = divided(terms, step)
            if not high or not low:
                continue
            rest, size = total(low), product(step)
            if self.unlikely(t, z3.Or(rest < 0, rest >= size)):
                found.append((step, total(high)))
                terms = low
        return [*found, ("last", total(terms))]

    def steps(self, terms: list[Any]) -> list[tuple[Any, ...]]:
        """Products of sizes that stand in an offset, longest first."""
        names = {n for n, e in self.sizes.items() if z3.is_expr(e)}
        seen = {tuple(f for f in factors if str(f) in names) for _, factors in terms}
        return sorted((s for s in seen if s), key=lambda s: (-len(s), str(s)))

    def unlikely(self, t: Touch, condition: Any) -> bool:
        """Whether a condition never holds where the access happens."""
        return self._ask([t.when, condition], in_tile(t.shape))[0] == z3.unsat

    # -- the solver
    def _decide(self, answer: Answer, t: Touch, condition: Any, around: list[Any], about: tuple[Touch, ...]) -> None:
        """One question's answer."""
        found, model = self._ask([condition], around)
        if found == z3.unsat:
            answer.proved += 1
        elif found == z3.unknown:
            answer.left.append(f"the solver ran out of time at {short(t.where)}")
        elif self.walker.unknowns.found(condition) and not self._promised(condition):
            answer.left.append(f"what decides the address at {short(t.where)} is a value that the kernel reads or sums")
        else:
            answer.shown.append(self._counterexample(condition, around, model, about))

    def _promised(self, condition: Any) -> bool:
        return all(e.decl().name() in self.walker.unknowns.promised for e in self.walker.unknowns.found(condition).values())

    def _ask(self, conditions: list[Any], around: list[Any], milliseconds: int = QUERY_MS) -> tuple[Any, Any]:
        left = int((self.until - time.monotonic()) * 1000)
        if left <= 0:
            return z3.unknown, None
        solver = z3.Solver()
        solver.set("timeout", min(milliseconds, left))
        asked = [index.truth(c) for c in conditions]
        solver.add(*self.launch.base, *within_grid(self.launch.grid), *around, *asked, *self.walker.unknowns.facts(*asked))
        found = solver.check()
        return found, solver.model() if found == z3.sat else None

    def _counterexample(self, condition: Any, around: list[Any], model: Any, about: tuple[Touch, ...]) -> dict[str, Any]:
        """Sizes and programs of a model, small ones if there are any."""
        bytes_ = [whole(s.nbytes.e) for s in self.launch.storages]
        found, small = self._ask([condition, *(b <= SMALL * 4 for b in bytes_)], around)
        model = small if found == z3.sat else model

        def value(e: Any) -> int:
            return int(model.eval(whole(e), model_completion=True).as_long())

        ids = [[value(p) for p in PID], [value(z3.Int(f"qid{d}")) for d in range(3)]]
        return {
            "sizes": {n: value(e) for n, e in self.sizes.items()},
            "programs": ids[: len(about)],
            "where": about[0].where,
            "offset": value(about[0].off.e),
            "argument": self.launch.storages[about[0].buf or 0].names[0],
            "kind": "/".join(t.kind for t in about),
        }


def twin(t: Touch) -> list[tuple[Any, Any]]:
    """Ids, positions and counters of an access, each with its name in another program."""
    return [
        *((PID[d], z3.Int(f"qid{d}")) for d in range(3)),
        *((AX[d], z3.Int(f"bx{d}")) for d in range(len(AX))),
        *((k, z3.Int(f"other {k}")) for k in t.counters),
    ]


# -- offsets as sums of products


def polynomial(e: Any) -> list[tuple[int, tuple[Any, ...]]]:
    """(coefficient, factors) of each term."""
    parts = e.children() if z3.is_add(e) else [e]
    return [term(p) for p in parts]


def term(e: Any) -> tuple[int, tuple[Any, ...]]:
    if z3.is_int_value(e):
        return e.as_long(), ()
    factors = [f for f in (e.children() if z3.is_mul(e) else [e])]
    coefficient = 1
    for f in factors:
        if z3.is_int_value(f):
            coefficient *= f.as_long()
    return coefficient, tuple(f for f in factors if not z3.is_int_value(f))


def divided(terms: list[Any], step: tuple[Any, ...]) -> tuple[list[Any], list[Any]]:
    """Terms that a product divides, without it, and the others."""
    high, low = [], []
    for coefficient, factors in terms:
        left = list(factors)
        for s in step:
            at = next((i for i, f in enumerate(left) if z3.eq(f, s)), None)
            if at is None:
                low.append((coefficient, factors))
                break
            left.pop(at)
        else:
            high.append((coefficient, tuple(left)))
    return high, low


def product(factors: tuple[Any, ...]) -> Any:
    out = whole(1)
    for i, f in enumerate(factors):
        out = f if i == 0 else out * f
    return out


def total(terms: list[Any]) -> Any:
    return z3.Sum([coefficient * product(factors) for coefficient, factors in terms]) if terms else whole(0)


def short(where: str) -> str:
    return where.rpartition("/")[2]


__all__ = ["Answer", "Beyond", "Questions", "Type"]
