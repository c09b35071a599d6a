"""Loops in the index domain.

A loop's body is walked for one turn, the k-th: an integer or pointer that the loop carries is ``first + k * step`` where
the body adds the same step each turn (found by walking the body with an unknown value, then shown by walking it again
with that form: induction), and else an unknown value.
"""

from __future__ import annotations

from typing import Any

import z3

from ...errors import Unsupported
from ..program import Block, Op, Region, Type
from ..values import bits
from . import index
from .index import Flag, Num, Spot, Unknowns, add, disj, mul, num, sub


class Beyond(Exception):
    """What the index domain can't follow, in words."""


def limits(elem: str) -> tuple[int, int]:
    """Least and greatest signed integer of a type. Raises Beyond for others."""
    try:
        width = bits(elem)
    except Unsupported as e:
        raise Beyond(str(e)) from None
    return -(1 << (width - 1)), (1 << (width - 1)) - 1


class Loops:
    """What a walker does with loops. The attributes are the walker's (``index_walk.py``)."""

    launch: Any
    unknowns: Unknowns
    counters: list[Any]
    quiet: int
    ideal: int
    loops: int

    def unknown(self, t: Type, where: str, low: Num | None = None, high: Num | None = None) -> Any:
        raise NotImplementedError

    def never(self, condition: Any, shape: tuple[int, ...], *about: Any) -> bool:
        raise NotImplementedError

    def from_zero(self, x: Num, shape: tuple[int, ...], least: int = 0) -> Num:
        raise NotImplementedError

    def any_mask(self, op: Op, t: Type) -> Any:
        raise NotImplementedError

    def block(self, block: Block, args: list[Any], values: dict[int, Any]) -> list[Any]:
        raise NotImplementedError

    def under(self, condition: Any, region: Region, values: dict[int, Any], args: list[Any] | None = None) -> list[Any]:
        raise NotImplementedError

    def loop(self, op: Op, values: dict[int, Any]) -> list[Any]:
        low, high, step, *first = (values[o] for o in op.operands)
        if isinstance(step, Num):
            step = self.from_zero(step, (), 1)  # a step that is the grid's size, where a program runs at all
        if not all(isinstance(b, Num) for b in (low, high, step)) or step.low <= 0 or op.attrs.get("unsigned"):
            raise Beyond(f"a loop whose step or range isn't followed, at {op.loc}")
        room = sub(high, low)
        turns = index.floor_div(add(room, sub(step, num(1))), step) or num(0)
        if room.low <= 0 and turns.high > 0:
            turns = Num(z3.If(index.whole(room.e) > 0, index.whole(turns.e), 0), 0, turns.high)
        if turns.high <= 0:
            return first
        k = z3.Int(f"k{self.loops}")
        self.loops += 1
        forms = self.forms(op, values, (low, high, step), k, turns, first)
        counter = Num(k, 0, turns.high - 1)
        carried = [self.at(f, counter, a, t) for f, a, t in zip(forms, first, op.types, strict=True)]
        self.body(op, values, (low, high, step), k, counter, carried)
        return [self.at(f, turns, a, t) for f, a, t in zip(forms, first, op.types, strict=True)]

    def body(self, op: Op, values: dict[int, Any], ends: Any, k: Any, counter: Num, carried: list[Any]) -> list[Any]:
        """The k-th turn."""
        low, high, step = ends
        at = add(low, mul(counter, step))
        at = Num(at.e, low.low, max(high.high - 1, low.low))
        self.counters.append(k)
        try:
            inside = z3.And(k >= 0, index.whole(at.e) < index.whole(high.e))
            return self.under(inside, op.regions[0], dict(values), [at, *carried])
        finally:
            self.counters.pop()

    def forms(
        self, op: Op, values: dict[int, Any], ends: Any, k: Any, turns: Num, first: list[Any]
    ) -> list[Num | None]:
        """The step of each carried value (in elements, for a pointer) where it is the same each turn; None where not."""
        counter = Num(k, 0, turns.high - 1)
        guesses = [self.quietly(op, values, ends, k, counter, first)] if first else []
        steps: list[Num | None] = guesses[0] if guesses else []
        for _ in range(2):
            if not any(s is not None for s in steps):
                break
            kept = self.confirmed(op, values, ends, k, counter, first, steps, turns)
            if kept == steps:
                break
            steps = kept
        else:
            steps = [None] * len(first)
        return steps

    def quietly(self, op: Op, values: dict[int, Any], ends: Any, k: Any, counter: Num, first: list[Any]) -> list[Any]:
        """Steps as the body suggests them, with the carried values unknown."""
        self.counters.append(k)
        carried = [self.loose(a, t, op.loc) for a, t in zip(first, op.types, strict=True)]
        self.counters.pop()
        self.quiet, self.ideal = self.quiet + 1, self.ideal + 1
        try:
            after = self.body(op, values, ends, k, counter, carried)
        finally:
            self.quiet, self.ideal = self.quiet - 1, self.ideal - 1
        return [self.difference(a, b, k) for a, b in zip(carried, after, strict=True)]

    def loose(self, first: Any, t: Type, where: str) -> Any:
        """An unknown value in place of a carried one; a pointer stays in its storage."""
        if isinstance(first, Spot):
            far = (num(-index.FAR), num(index.FAR))
            return Spot(first.buf, self.unknown(Type("i64", t.shape), where, *far), first.elem)
        return self.unknown(t, where)

    def difference(self, before: Any, after: Any, k: Any) -> Num | None:
        """How far a value moved in a turn, if that doesn't depend on the turn or on anything carried."""
        if isinstance(before, Spot) and isinstance(after, Spot):
            return self.difference(before.off, after.off, k) if before.buf == after.buf is not None else None
        if not isinstance(before, Num) or not isinstance(after, Num):
            return None
        e = z3.simplify(index.whole(after.e) - index.whole(before.e), som=True)
        if mentions(e, k) or self.unknowns.found(e):
            return None
        ends = index.span(e, self.launch.known)
        return num(e.as_long()) if z3.is_int_value(e) else ends and Num(e, *ends)

    def confirmed(self, op: Op, values: Any, ends: Any, k: Any, counter: Num, first: list[Any], steps: list[Any],
                  turns: Num) -> list[Num | None]:  # fmt: skip
        """Steps that hold by induction: from ``first + k * step`` the body goes to ``first + (k + 1) * step``, and no
        turn leaves the integer's width."""
        carried = [self.at(s, counter, a, t) for s, a, t in zip(steps, first, op.types, strict=True)]
        self.quiet += 1
        try:
            after = self.body(op, values, ends, k, counter, carried)
        finally:
            self.quiet -= 1
        out: list[Num | None] = []
        for s, a, b, c, t in zip(steps, first, carried, after, op.types, strict=True):
            holds = s is not None and self.fits(self.at(s, turns, a, t), t) and same_step(b, c, s)
            out.append(s if holds else None)
        return out

    def fits(self, value: Any, t: Type) -> bool:
        if isinstance(value, Spot):
            return abs(value.off.low) < 1 << 62 and abs(value.off.high) < 1 << 62
        low, high = limits(t.elem)
        if value.low >= low and value.high <= high:
            return True
        return self.never(disj(value.e < low, value.e > high), t.shape, value.e)

    def at(self, step: Num | None, turn: Num, first: Any, t: Type) -> Any:
        """A carried value at a turn."""
        if step is None:
            return self.loose(first, t, "a value that a loop carries")
        if isinstance(first, Spot):
            return Spot(first.buf, add(first.off, mul(turn, step)), first.elem)
        return add(first, mul(turn, step))

    def until(self, op: Op, values: dict[int, Any]) -> list[Any]:
        """A while loop: one turn with all that it carries unknown."""
        first = [values[o] for o in op.operands]
        k = z3.Int(f"k{self.loops}")
        self.loops += 1
        self.counters.append(k)
        before, after = op.regions[0].blocks[0], op.regions[1].blocks[0]
        start = [self.loose(a, t, op.loc) for a, t in zip(first, before.arg_types, strict=True)]
        condition, *passed = self.block(before, start, inner := dict(values))
        goes = condition.e if isinstance(condition, Flag) else self.any_mask(op, Type("i1"))
        self.under(goes, op.regions[1], inner, passed)
        self.counters.pop()
        return [self.loose(a, t, op.loc) for a, t in zip(passed, after.arg_types, strict=True)]


def mentions(e: Any, what: Any) -> bool:
    """Whether an expression contains another."""
    return not z3.eq(z3.substitute(e, (what, what + 1)), e)


def same_step(before: Any, after: Any, step: Num) -> bool:
    a, b = (x.off if isinstance(x, Spot) else x for x in (before, after))
    if not isinstance(a, Num) or not isinstance(b, Num):
        return False
    e = z3.simplify(index.whole(b.e) - index.whole(a.e) - index.whole(step.e), som=True)
    return z3.is_int_value(e) and e.as_long() == 0
