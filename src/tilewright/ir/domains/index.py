"""Index domain: integers and pointers with symbolic sizes and program ids, over z3. Floats are not looked at.

A value of a tile is one expression over the positions ``AX[0]``, ``AX[1]`` … in it, the program ids ``PID``, the launch's
sizes, and one counter a loop. Beside each expression stands an interval of plain integers, so that most questions (does
this sum fit 32 bits?) need no solver. What isn't known (a value that was loaded, an operation without a rule here) is an
unknown function of all of these: whatever it is, what is proved holds. Integers that may leave their width wrap.

The interval before the solver is tinygrad's order of work (uop/validate.py); positions as variables is how triton-viz asks.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import z3

AX = tuple(z3.Int(f"ax{d}") for d in range(6))
PID = tuple(z3.Int(f"pid{d}") for d in range(3))
OPAQUE = "a float"  # any value that is no integer, truth value or pointer
FAR = 1 << 70


@dataclass(frozen=True, slots=True)
class Num:
    """An integer: ``e`` an int or a z3 integer, within ``low`` and ``high``."""

    e: Any
    low: int
    high: int

    @property
    def fixed(self) -> bool:
        return self.low == self.high


@dataclass(frozen=True, slots=True)
class Flag:
    """A truth value: a bool or a z3 one."""

    e: Any


@dataclass(frozen=True, slots=True)
class Spot:
    """A pointer: number of the storage (None: not one alone), offset from its start in elements of ``elem``."""

    buf: int | None
    off: Num
    elem: str


def num(c: int) -> Num:
    return Num(c, c, c)


def made(e: Any, low: int, high: int) -> Num:
    return num(low) if low == high else Num(e, low, high)


def add(a: Num, b: Num) -> Num:
    if a.fixed and a.low == 0:
        return b
    if b.fixed and b.low == 0:
        return a
    return made(a.e + b.e, a.low + b.low, a.high + b.high)


def neg(a: Num) -> Num:
    return made(-a.e, -a.high, -a.low)


def sub(a: Num, b: Num) -> Num:
    return num(0) if a is b else add(a, neg(b))


def mul(a: Num, b: Num) -> Num:
    ends = [x * y for x in (a.low, a.high) for y in (b.low, b.high)]
    if a.fixed and a.low == 1:
        return b
    if b.fixed and b.low == 1:
        return a
    return made(a.e * b.e, min(ends), max(ends))


def floor_div(a: Num, b: Num) -> Num | None:
    """Rounded down; None unless the divisor is above 0."""
    if b.low <= 0:
        return None
    if a.fixed and b.fixed:
        return num(a.low // b.low)
    if b.fixed and b.low == 1:
        return a
    ends = [x // y for x in (a.low, a.high) for y in (b.low, b.high)]
    return made(whole(a.e) / whole(b.e), min(ends), max(ends))


def remainder(a: Num, b: Num) -> Num | None:
    """``a - a // b * b`` for a divisor above 0, else None."""
    if b.low <= 0:
        return None
    if a.low >= 0 and a.high < b.low:
        return a
    return made(whole(a.e) % whole(b.e), 0, min(b.high - 1, a.high) if a.low >= 0 else b.high - 1)


def whole(e: Any) -> Any:
    return z3.IntVal(e) if isinstance(e, int) else e


def truth(e: Any) -> Any:
    return z3.BoolVal(e) if isinstance(e, bool) else e


def conj(*es: Any) -> Any:
    """All of them, as a bool where that is known."""
    if any(e is False for e in es):
        return False
    left = [e for e in es if e is not True]
    return True if not left else left[0] if len(left) == 1 else z3.And(left)


def disj(*es: Any) -> Any:
    if any(e is True for e in es):
        return True
    left = [e for e in es if e is not False]
    return False if not left else left[0] if len(left) == 1 else z3.Or(left)


def inverse(e: Any) -> Any:
    return not e if isinstance(e, bool) else z3.Not(e)


def choose(mask: Any, a: Any, b: Any) -> Any:
    """``a`` where the mask holds, else ``b``: two values of one kind."""
    if mask is True or mask is False or a is b:
        return a if mask is True or a is b else b
    if isinstance(a, Num) and isinstance(b, Num):
        return made(z3.If(mask, whole(a.e), whole(b.e)), min(a.low, b.low), max(a.high, b.high))
    if isinstance(a, Flag) and isinstance(b, Flag):
        return Flag(disj(conj(mask, a.e), conj(inverse(mask), b.e)))
    if isinstance(a, Spot) and isinstance(b, Spot):
        return Spot(a.buf if a.buf == b.buf else None, choose(mask, a.off, b.off), a.elem)
    return OPAQUE


def compare(predicate: str, a: Num, b: Num) -> Any:
    """eq, ne, lt, le, gt, ge of integers, as a bool where the intervals decide."""
    if predicate in ("gt", "ge"):
        return compare({"gt": "lt", "ge": "le"}[predicate], b, a)
    if predicate == "ne":
        return inverse(compare("eq", a, b))
    if predicate == "eq":
        apart = a.high < b.low or b.high < a.low
        return False if apart else True if a.fixed and b.fixed else whole(a.e) == whole(b.e)
    strict = predicate == "lt"
    if a.high < b.low or (not strict and a.high == b.low):
        return True
    if a.low > b.high or (strict and a.low == b.high):
        return False
    return whole(a.e) < whole(b.e) if strict else whole(a.e) <= whole(b.e)


def moved(value: Any, pairs: list[tuple[Any, Any]]) -> Any:
    """A value with positions replaced, all at once."""
    if isinstance(value, Num):
        return value if isinstance(value.e, int) else Num(z3.substitute(value.e, pairs), value.low, value.high)
    if isinstance(value, Flag):
        return value if isinstance(value.e, bool) else Flag(z3.substitute(value.e, pairs))
    if isinstance(value, Spot):
        return Spot(value.buf, moved(value.off, pairs), value.elem)
    return value


def span(e: Any, known: dict[str, tuple[int, int]]) -> tuple[int, int] | None:
    """Range of an expression from those of its variables; None where one isn't known."""
    if z3.is_int_value(e):
        return e.as_long(), e.as_long()
    if z3.is_const(e):
        return known.get(e.decl().name())
    parts = [span(c, known) for c in e.children()]
    if any(p is None for p in parts):
        return None
    nums = [Num(0, *p) for p in parts if p]
    kind = e.decl().kind()
    if kind in (z3.Z3_OP_ADD, z3.Z3_OP_MUL, z3.Z3_OP_SUB):
        fn = {z3.Z3_OP_ADD: add, z3.Z3_OP_MUL: mul, z3.Z3_OP_SUB: sub}[kind]
        out = nums[0]
        for n in nums[1:]:
            out = Num(0, *_ends(fn, out, n))
        return out.low, out.high
    if kind == z3.Z3_OP_IDIV and nums[1].low > 0:
        ends = [x // y for x in (nums[0].low, nums[0].high) for y in (nums[1].low, nums[1].high)]
        return min(ends), max(ends)
    return (0, nums[1].high - 1) if kind == z3.Z3_OP_MOD and nums[1].low > 0 else None


def _ends(fn: Any, a: Num, b: Num) -> tuple[int, int]:
    out = fn(a, b)
    return out.low, out.high


@dataclass
class Unknowns:
    """Unknown functions, with the range that each keeps to (expressions or ints, both ends included)."""

    ranges: dict[str, tuple[Any, Any]] = field(default_factory=dict)
    words: dict[str, str] = field(default_factory=dict)
    promised: set[str] = field(default_factory=set)  # those whose range is the contract's

    def integer(self, low: Num, high: Num, where: str, at: Iterable[Any]) -> Num:
        """An unknown integer between two values, a function of ``at``."""
        f = self._function(z3.IntSort(), where, at)
        self.ranges[f.decl().name()] = (low.e, high.e)
        return Num(f, low.low, high.high)

    def flag(self, where: str, at: Iterable[Any]) -> Flag:
        return Flag(self._function(z3.BoolSort(), where, at))

    def _function(self, sort: Any, where: str, at: Iterable[Any]) -> Any:
        at = list(at)
        name = f"u{len(self.words)}"
        self.words[name] = where
        return z3.Function(name, *[z3.IntSort() for _ in at], sort)(*at)

    def found(self, *es: Any) -> dict[int, Any]:
        """Applications of unknown functions in expressions, by the expression's id."""
        if not self.words:
            return {}
        seen: set[int] = set()
        out: dict[int, Any] = {}
        stack = [e for e in es if z3.is_expr(e)]
        while stack:
            e = stack.pop()
            if e.get_id() in seen:
                continue
            seen.add(e.get_id())
            if z3.is_app(e) and e.decl().name() in self.words:
                out[e.get_id()] = e
            stack += e.children()
        return out

    def facts(self, *es: Any) -> list[Any]:
        """What is known of the unknown integers in expressions."""
        out = []
        for e in self.found(*es).values():
            if (ends := self.ranges.get(e.decl().name())) is not None:
                out += [e >= ends[0], e <= ends[1]]
        return out
