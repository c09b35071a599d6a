"""Is every element of a storage written, at every size? For each element a program, a position and a turn are guessed, and
the solver is asked whether they always write it.

The guess inverts the offset digit by digit (``Questions.digits``): where a digit is ``32 * pid + lane``, element c is
written by ``pid = c // 32`` at ``lane = c % 32``; where one digit is ``pid // H`` and another ``pid % H``, ``pid`` is put
together from both. A wrong guess proves nothing and claims nothing.
"""

from __future__ import annotations

from typing import Any

import z3

from ..values import nbytes
from . import index
from .index import AX, PID, conj, disj
from .index_polynomial import Term, polynomial, product, shares, spread, total
from .index_walk import Touch, in_tile, within_grid

Equation = tuple[Any, Any]  # an expression and what it is to be


def uncovered(q: Any, buf: int) -> str:
    """Why it isn't shown that the launch of some Questions writes every element of a storage; empty if it is."""
    stores = [t for t in q.touches if t.buf == buf and t.kind == "store"]
    held = q.launch.storages[buf]
    names = [z3.Int(f"c{i}") for i in range(len(q.digits(stores[0])))]
    ways: list[Any] = []
    room: list[Any] = []
    for t in stores:
        digits = q.digits(t)
        radices = [d.radix for d in digits[:-1]]
        limit = shares(spread(held.nbytes.e), [(nbytes(t.elem), ()), *radices])
        if limit is None or len(digits) != len(names):
            return f"the elements of '{held.names[0]}' are not followed"
        ends = [product(step) * times for times, step in radices] + [limit]
        mine = [c for n, end in zip(names, ends, strict=True) for c in (n >= 0, n < end)]
        if room and str(mine) != str(room):
            return f"'{held.names[0]}' is written in more than one way"
        room = mine
        found = solution(q, t, [(d.value, n) for d, n in zip(digits, names, strict=True)])
        if found is not None:
            facts = [t.when, *in_tile(t.shape), *within_grid(q.launch.grid)]
            facts += [d.value == n for d, n in zip(digits, names, strict=True)]
            ways.append(z3.substitute(index.truth(conj(*facts)), found))
    if not ways:
        return f"who writes an element of '{held.names[0]}' is not followed"
    answer = q.settled([z3.Not(index.truth(disj(*ways)))], room)
    return "" if answer == z3.unsat else f"whether every element of '{held.names[0]}' is written is not settled"


def solution(q: Any, t: Touch, equations: list[Equation]) -> list[tuple[Any, Any]] | None:
    """Values of the access's variables that make each expression what it is to be; None where that isn't told."""
    free = {str(v): v for v in (*PID, *AX[: len(t.shape)], *t.counters)}
    values: dict[str, Any] = {}
    work = list(equations)
    for _ in range(16):
        atoms: list[Equation] = []
        for e, to in work:
            parts = split(polynomial(spread(e)), to, set(q.sizes))
            if parts is None:
                return None
            atoms += parts
        for atom, to in atoms:
            if str(atom) in free:
                values.setdefault(str(atom), to)
        further = joined([(a, to) for a, to in atoms if str(a) not in free])
        if further is None:
            return None
        work = further
        if not work:
            return [(v, values.get(n, z3.IntVal(0))) for n, v in free.items()]
    return None


def split(terms: list[Term], to: Any, sizes: set[str]) -> list[Equation] | None:
    """A sum as equations for its parts: the largest step first, each part what is left divided by its step."""
    known = [t for t in terms if all(str(f) in sizes for f in t[1])]
    parts = sorted((t for t in terms if t not in known), key=lambda t: -abs(t[0]))
    if any(len(f) != 1 for _, f in parts) or len({abs(c) for c, _ in parts}) < len(parts):
        return None
    rest = to - total(known) if known else to
    if len(parts) == 1:
        c, (atom,) = parts[0]
        return [(atom, rest if c == 1 else -rest if c == -1 else rest / c)]
    if any(c < 0 for c, _ in parts):
        return None
    out = []
    for c, (atom,) in parts:
        out.append((atom, rest / c if c > 1 else rest))
        rest = rest % c
    return out


def joined(atoms: list[Equation]) -> list[Equation] | None:
    """Quotients and remainders of one number by one divisor, put together: ``x // h`` and ``x % h`` give ``x``."""
    found: dict[str, dict[str, Any]] = {}
    for atom, to in atoms:
        kind = atom.decl().kind() if z3.is_app(atom) else None
        if kind not in (z3.Z3_OP_IDIV, z3.Z3_OP_MOD):
            return None
        x, by = atom.children()
        entry = found.setdefault(f"{x} by {by}", {"x": x, "by": by})
        entry.setdefault("high" if kind == z3.Z3_OP_IDIV else "low", to)
    return [(e["x"], e.get("high", z3.IntVal(0)) * e["by"] + e.get("low", z3.IntVal(0))) for e in found.values()]
