"""Questions to the solver about a walked launch: is every access within its storage, do two programs meet on an element,
at any size of the contract? An answer is a proof, a counterexample (sizes, program, element), or why there is neither.

Two programs: the second is a copy of the first with its own ids, positions and loop counters (after GPUVerify, Betts et
al. 2012). Offsets such as ``(row * N + column)`` are compared digit by digit where it is shown that the lower digit stays
below N: then equal offsets have equal digits, which spares the solver the products.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import z3

from ..values import nbytes
from . import index
from .index import AX, PID, conj, disj, whole
from .index_polynomial import Term, divided, polynomial, product, shares, spread, total
from .index_walk import SymbolicLaunch, Touch, Walker, in_tile, within_grid

QUERY_MS = 400
HARD_S = 8.0  # for what the solver doesn't settle in that time, once a question: a backstop to
SEEDS, STEPS = 6, 3_000_000
SMALLER_S = 1.5  # for a small counterexample, once there is one
SMALL = (1 << 15, 1 << 18, 1 << 21)  # bytes of each storage in a counterexample, tried in turn


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


@dataclass(frozen=True)
class Digit:
    """A digit of an offset and its radix: a number times a product of sizes."""

    radix: Term | None
    value: Any


class Questions:
    """Asks about one launch. ``sizes``: the variables whose values make a counterexample."""

    def __init__(self, launch: SymbolicLaunch, sizes: dict[str, Any]):
        self.launch, self.sizes = launch, sizes
        self.until = time.monotonic()
        self.walker = Walker(launch)
        self.touches: list[Touch] = self.walker.run()
        self.known_digits: dict[Any, list[Digit]] = {}
        self.tried = False  # a hard question at length

    @property
    def synchronises(self) -> bool:
        """Whether programs may order themselves: an atomic's old value is used."""
        ops = list(self.launch.program.ops())
        used = {o for op in ops for o in op.operands}
        return any(op.name.startswith("tt.atomic") and used & set(op.results) for op in ops)

    def ask(self, question: str, seconds: float) -> Answer:
        """``bounds``, ``races`` or ``coverage``, within so many seconds."""
        self.until, self.tried = time.monotonic() + seconds, False
        return {"bounds": self.bounds, "races": self.races, "coverage": self.coverage}[question]()

    # -- coverage
    def coverage(self) -> Answer:
        """Every element of the storages that the launch fills, and that are no inputs, is written."""
        from .index_cover import uncovered

        answer = Answer()
        for buf in sorted({t.buf for t in self.touches if t.kind == "store" and t.buf is not None}):
            if self.launch.storages[buf].input:
                continue
            why = uncovered(self, buf)
            answer.proved += not why
            answer.left += [why] if why else []
        return answer

    def settled(self, conditions: list[Any], around: list[Any]) -> Any:
        """The solver's answer."""
        return self._ask(conditions, around)[0]

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
        if t.off.low >= 0 and (t.off.high + 1) * size <= held.low:
            return False
        digits = self.digits(t)
        limit = shares(spread(held.e), [(size, ()), *(d.radix for d in digits[:-1])])
        if limit is not None:
            return disj(digits[-1].value < 0, digits[-1].value >= limit)
        return disj(whole(t.off.e) < 0, (whole(t.off.e) + 1) * size > held.e)

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
            when, core, around = self.meeting(a, b)
            self._decide(answer, a, conj(*when, *core), around, (a, b), core)
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

    def meeting(self, a: Touch, b: Touch) -> tuple[list[Any], list[Any], list[Any]]:
        """The conditions of two accesses, those of being different programs that meet, and what holds of both."""
        renamed = twin(b)
        other = [z3.substitute(index.truth(e), renamed) for e in (*in_tile(b.shape), *within_grid(self.launch.grid))]
        apart = disj(*(PID[d] != z3.Int(f"qid{d}") for d, n in enumerate(self.launch.grid) if n.high > 1))
        first, second = self.digits(a), self.digits(b)
        if [str(d.radix) for d in first] != [str(d.radix) for d in second]:
            first, second = ([Digit(None, whole(t.off.e))] for t in (a, b))
        equal = [x.value == z3.substitute(y.value, renamed) for x, y in zip(first, second, strict=True)]
        when = z3.substitute(index.truth(b.when), renamed)
        return [a.when, when], [apart, *equal], [*in_tile(a.shape), *other]

    def digits(self, t: Touch) -> list[Digit]:
        """An offset as digits, the lowest first: each is shown to lie between 0 and its radix, a product of sizes. The
        last has none."""
        key = (whole(t.off.e).get_id(), index.truth(t.when).get_id(), t.shape)
        if key not in self.known_digits:
            terms = polynomial(spread(t.off.e))
            found: list[Digit] = []
            while (lowest := self._lowest(t, terms)) is not None:
                digit, terms = lowest
                found.append(digit)
            self.known_digits[key] = [*found, Digit(None, total(terms))]
        return self.known_digits[key]

    def _lowest(self, t: Touch, terms: list[Term]) -> tuple[Digit, list[Term]] | None:
        """The lowest digit and what stands above it."""
        for step in self.steps(terms):
            high, low = divided(terms, step)
            times = math.gcd(*(c for c, f in high if f)) or math.gcd(*(c for c, _ in high))
            low += [(c % times, step) for c, f in high if not f and c % times]
            rest, radix = total(low), product(step) * times
            if not low or self.never(t, z3.Or(rest < 0, rest >= radix)):
                return Digit((times, step), rest), [(c // times, f) for c, f in high if c // times]
        return None

    def steps(self, terms: list[Term]) -> list[tuple[Any, ...]]:
        """Products of sizes that stand in an offset, shortest first."""
        seen = {}
        for _, factors in terms:
            mine = tuple(f for f in factors if str(f) in self.sizes)
            for count in range(1, len(mine) + 1):
                seen.update({str(mine[i : i + count]): mine[i : i + count] for i in range(len(mine) - count + 1)})
        return sorted(seen.values(), key=lambda s: (len(s), str(s)))

    def never(self, t: Touch, condition: Any) -> bool:
        """Whether a condition never holds where the access happens."""
        return self._ask([t.when, condition], in_tile(t.shape))[0] == z3.unsat

    # -- the solver
    def _decide(self, answer: Answer, t: Touch, condition: Any, around: list[Any], about: tuple[Touch, ...],
                core: list[Any] | None = None) -> None:  # fmt: skip
        """One question's answer. ``core``: parts of the condition that may be impossible by themselves; with less to look
        at, the solver finds that sooner."""
        found, model = self._ask([condition], around)
        if found == z3.unknown and core is not None and not self.tried:
            self.tried, self.until = True, max(self.until, time.monotonic() + HARD_S)
            found = z3.unsat if self._impossible(core, around) else z3.unknown
        if found == z3.unsat:
            answer.proved += 1
        elif found == z3.unknown:
            answer.left.append(f"the solver ran out of time at {short(t.where)}")
        elif self.walker.unknowns.found(condition) and not self._promised(condition):
            answer.left.append(f"what decides the address at {short(t.where)} is a value that the kernel reads or sums")
        else:
            answer.shown.append(self._counterexample(condition, around, model, about))

    def _promised(self, condition: Any) -> bool:
        return all(
            e.decl().name() in self.walker.unknowns.promised for e in self.walker.unknowns.found(condition).values()
        )

    def _ask(self, conditions: list[Any], around: list[Any], milliseconds: int = QUERY_MS) -> tuple[Any, Any]:
        left = int((self.until - time.monotonic()) * 1000)
        if left <= 0:
            return z3.unknown, None
        solver = z3.Solver()
        solver.set("timeout", min(milliseconds, left))
        asked = [index.truth(c) for c in conditions]
        solver.add(
            *self.launch.base, *within_grid(self.launch.grid), *around, *asked, *self.walker.unknowns.facts(*asked)
        )
        found = solver.check()
        return found, solver.model() if found == z3.sat else None

    def _impossible(self, core: list[Any], around: list[Any]) -> bool:
        """Whether conditions never hold together, whatever the sizes: no more is told of those than how small they are."""
        least = [
            v >= self.launch.known[n][0] for n, v in self.sizes.items() if n in self.launch.known and z3.is_expr(v)
        ]
        asked = [index.truth(c) for c in core]
        held = [*least, *within_grid(self.launch.grid), *around, *asked, *self.walker.unknowns.facts(*asked)]
        for seed in range(SEEDS):  # what takes one order of work long is soon found by another
            left = int(1000 * (self.until - time.monotonic()))
            if left <= 0:
                break
            solver = z3.Solver()
            solver.set("timeout", left, "rlimit", STEPS, "random_seed", seed)
            solver.add(*held)
            if (found := solver.check()) != z3.unknown:
                return bool(found == z3.unsat)
        return False

    def _counterexample(
        self, condition: Any, around: list[Any], model: Any, about: tuple[Touch, ...]
    ) -> dict[str, Any]:
        """Sizes and programs of a model, small ones if there are any."""
        bytes_ = [whole(s.nbytes.e) for s in self.launch.storages]
        self.until = max(self.until, time.monotonic() + SMALLER_S)
        for most in SMALL:
            found, small = self._ask([condition, *(b <= most for b in bytes_)], around)
            if found == z3.sat:
                model = small
                break

        def value(e: Any) -> int:
            return int(model.eval(whole(e), model_completion=True).as_long())

        ids = [[value(p) for p in PID], [value(z3.Int(f"qid{d}")) for d in range(3)]]
        return {
            "sizes": {n: value(e) for n, e in self.sizes.items()},
            "programs": ids[: len(about)],
            "grid": [value(n.e) for n in self.launch.grid],
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


def short(where: str) -> str:
    return where.rpartition("/")[2]
