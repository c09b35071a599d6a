"""Which function of the sizes a launch's numbers are, told from the numbers at several sizes.

    value([20, 48, 6], {"M": [4, 8, 2], "N": [5, 6, 3]})  ->  "M*N"

A form is an expression over sizes in the words of task/tensors.py (``+ - * // min max``), found by trying: a constant, a
size, a product of sizes, a multiple or a rounded-up share of one, a sum of two, a product of two shares, a clamp. It must
give every number seen; what was never seen is an assumption, which is why claims say at how many sizes it was seen. Each
form is also a value of the index domain, with its range.
"""

from __future__ import annotations

import ast
import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import z3

from ...task.syntax import expression
from ...task.tensors import evaluate
from . import index
from .index import Num, choose, compare, conj, disj, inverse, num, whole

Vector = tuple[int, ...]
POWERS = tuple(1 << i for i in range(1, 15))
MOST_PRODUCTS = 160


class Forms:
    """Forms of vectors of numbers, one entry a place; ``sizes`` are the places' sizes by name, ``shapes`` expressions
    that the task's tensors have, ``shares`` numbers by which launches may divide."""

    def __init__(self, sizes: Mapping[str, Sequence[int]], shapes: Sequence[str] = (), shares: Sequence[int] = ()):
        self.places = [dict(zip(sizes, v, strict=True)) for v in zip(*sizes.values(), strict=True)]
        names = list(dict.fromkeys([*sizes, *(s for s in shapes if s not in sizes)]))
        self.shares = tuple(dict.fromkeys([*(s for s in shares if s > 1), *POWERS]))
        self.products: dict[str, Vector] = {}
        for count in (1, 2, 3, 4):
            for group in itertools.combinations(names, count):
                if len(self.products) < MOST_PRODUCTS and (v := self._product(group)) is not None:
                    self.products["*".join(g if g.isidentifier() else f"({g})" for g in group)] = v

    def _product(self, group: tuple[str, ...]) -> Vector | None:
        try:
            return tuple(math.prod(evaluate(g, p) for g in group) for p in self.places)
        except (ArithmeticError, ValueError):
            return None

    def value(self, numbers: Sequence[int]) -> str | None:
        """The simplest form; None if there is none."""
        v = tuple(numbers)
        if len(set(v)) == 1:
            return str(v[0])
        return next((f for find in (self._linear, self._share, self._sums, self._clamped) for f in find(v)), None)

    def _linear(self, v: Vector) -> Iterator[str]:
        """A product, a multiple of one, or either with something added."""
        yield from (text for text, p in self.products.items() if p == v)
        for text, p in self.products.items():
            i, j = _apart(p)
            if i == j or (v[i] - v[j]) % (p[i] - p[j]):
                continue
            a = (v[i] - v[j]) // (p[i] - p[j])
            b = v[i] - a * p[i]
            if a and all(x == a * y + b for x, y in zip(v, p, strict=True)):
                yield f"{a}*{text}" + (f"+{b}" if b > 0 else f"-{-b}" if b else "")

    def _share(self, v: Vector) -> Iterator[str]:
        """A product over a number, rounded up or down; the product of such a share and another or a product."""
        shares = {}
        for text, p in self.products.items():
            for k in self.shares:
                shares[f"(({text}+{k - 1})//{k})"] = tuple(-(-x // k) for x in p)
        yield from (text for text, p in shares.items() if p == v)
        yield from (f"({t}//{k})" for t, p in self.products.items() for k in self.shares
                    if tuple(x // k for x in p) == v)  # fmt: skip
        plain = {**self.products, **shares}
        by = {p: text for text, p in reversed(plain.items())}
        for text, p in plain.items():
            if all(x and y % x == 0 or (not x and not y) for x, y in zip(p, v, strict=True)):
                rest = tuple(y // x if x else 0 for x, y in zip(p, v, strict=True))
                if (other := by.get(rest)) is not None:
                    yield f"{text}*{other}"

    def _sums(self, v: Vector) -> Iterator[str]:
        by = {p: text for text, p in reversed(self.products.items())}
        for text, p in self.products.items():
            if (other := by.get(tuple(x - y for x, y in zip(v, p, strict=True)))) is not None:
                yield f"({text}+{other})"

    def _clamped(self, v: Vector) -> Iterator[str]:
        """The least or the greatest of a form and a number that is seen."""
        for f, end in (("min", max(v)), ("max", min(v))):
            free = [i for i, x in enumerate(v) if x != end]
            for text, p in self.products.items():
                if (
                    free
                    and all(p[i] == v[i] for i in free)
                    and all(_clamp(f, x, end) == y for x, y in zip(p, v, strict=True))
                ):
                    yield f"{f}({text},{end})"
            for text, p in self.products.items():
                for k in self.shares:
                    if all(_clamp(f, -(-x // k), end) == y for x, y in zip(p, v, strict=True)):
                        yield f"{f}((({text}+{k - 1})//{k}),{end})"

    def power(self, numbers: Sequence[int]) -> tuple[str, int, int] | None:
        """(form, least, greatest) if the numbers are the next power of two of the form, within these ends."""
        v = tuple(numbers)
        least, most = min(v), max(v)
        for text, p in self.products.items():
            if all(min(max(_power(x), least), most) == y for x, y in zip(p, v, strict=True)):
                return text, least, most
        return None


def _apart(p: Vector) -> tuple[int, int]:
    """Two places where a vector differs."""
    return 0, next((i for i, x in enumerate(p) if x != p[0]), 0)


def _clamp(f: str, x: int, end: int) -> int:
    return min(x, end) if f == "min" else max(x, end)


def _power(x: int) -> int:
    return 1 << (x - 1).bit_length() if x > 0 else 1


def symbol(name: str, low: int, high: int) -> Num:
    """A size, or the number that it has to be."""
    return index.made(z3.Int(name), low, high)


def value(form: str | int, sizes: Mapping[str, Num]) -> Num | None:
    """A form as a value of the index domain; None where it holds what the domain doesn't (a negative divisor)."""

    def walk(node: ast.expr) -> Num | None:
        match node:
            case ast.Constant(value=int() as v):
                return num(v)
            case ast.Name(id=name):
                return sizes.get(name)
            case ast.UnaryOp(op=ast.USub(), operand=a):
                inner = walk(a)
                return inner and index.neg(inner)
            case ast.BinOp(left=a, op=op, right=b) if type(op) in _OPERATIONS:
                x, y = walk(a), walk(b)
                return _OPERATIONS[type(op)](x, y) if x is not None and y is not None else None
            case ast.Call(func=ast.Name(id="min" | "max" as f), args=args):
                parts = [walk(a) for a in args]
                return None if any(p is None for p in parts) else _extreme(f, [p for p in parts if p is not None])
        return None

    return num(form) if isinstance(form, int) else walk(expression(form))


_OPERATIONS: dict[type, Callable[[Num, Num], Num | None]] = {
    ast.Add: index.add,
    ast.Sub: index.sub,
    ast.Mult: index.mul,
    ast.FloorDiv: index.floor_div,
    ast.Mod: index.remainder,
}


def _extreme(f: str, parts: list[Num]) -> Num:
    out = parts[0]
    for p in parts[1:]:
        picked = choose(compare("le" if f == "min" else "ge", out, p), out, p)
        ends = (min, min) if f == "min" else (max, max)
        out = index.made(picked.e, ends[0](out.low, p.low), ends[1](out.high, p.high))
    return out


def condition(text: str, sizes: Mapping[str, Num]) -> Any:
    """A constraint over sizes as a condition; True (nothing is known) where the domain doesn't have it."""

    def walk(node: ast.expr) -> Any:
        match node:
            case ast.BoolOp(op=op, values=parts):
                sides = [walk(p) for p in parts]
                return None if any(s is None for s in sides) else (conj if isinstance(op, ast.And) else disj)(*sides)
            case ast.UnaryOp(op=ast.Not(), operand=part):
                side = walk(part)
                return None if side is None else inverse(side)
            case ast.Compare(left=left, ops=ops, comparators=rights):
                terms = [value(ast.unparse(n), sizes) for n in (left, *rights)]
                names = [_PREDICATES.get(type(o)) for o in ops]
                if any(t is None for t in terms) or any(n is None for n in names):
                    return None
                return conj(*(compare(str(n), a, b) for n, a, b in zip(names, terms, terms[1:], strict=False)))  # type: ignore[arg-type]
        return None

    found = walk(expression(text.strip()))
    return True if found is None else found


_PREDICATES: dict[type[ast.cmpop], str] = {
    ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge", ast.Eq: "eq", ast.NotEq: "ne",
}  # fmt: skip


def within(e: Num, low: int, high: int) -> Any:
    """The condition that a number lies between two, both included."""
    return conj(True if e.low >= low else whole(e.e) >= low, True if e.high <= high else whole(e.e) <= high)
