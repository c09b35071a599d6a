"""Forms (``index_fit.py``) and constraints over sizes as values and conditions of the index domain, with their ranges."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from typing import Any

import z3

from ...task.syntax import expression
from . import index
from .index import Num, choose, compare, conj, disj, inverse, num, whole


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
