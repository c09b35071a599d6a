"""Offsets as sums of products."""

from __future__ import annotations

import math
from typing import Any

import z3

from .index import whole

Term = tuple[int, tuple[Any, ...]]  # coefficient and factors


def spread(e: Any) -> Any:
    """An expression as a sum of products. Choices, and quotients and remainders that hold some, stay as they are: pushed
    into each branch they would no longer be those that masks speak of."""
    held: dict[int, bool] = {}
    names: dict[int, tuple[Any, Any]] = {}

    def chooses(x: Any) -> bool:
        if x.get_id() not in held:
            held[x.get_id()] = z3.is_app_of(x, z3.Z3_OP_ITE) or any(map(chooses, x.children()))
        return held[x.get_id()]

    def walk(x: Any) -> None:
        kind = x.decl().kind()
        if kind == z3.Z3_OP_ITE or (kind in (z3.Z3_OP_IDIV, z3.Z3_OP_MOD) and chooses(x)):
            names.setdefault(x.get_id(), (x, z3.Int(f"part {len(names)}")))
            return
        for c in x.children():
            walk(c)

    e = whole(e)
    walk(e)
    out = z3.simplify(z3.substitute(e, *names.values()) if names else e, som=True)
    return z3.substitute(out, *[(name, x) for x, name in names.values()]) if names else out


def polynomial(e: Any) -> list[Term]:
    """A sum of products as terms; none for 0."""
    parts = e.children() if z3.is_add(e) else [e]
    return [t for t in map(term, parts) if t[0]]


def term(e: Any) -> Term:
    factors = flat(e)
    numbers = [f.as_long() for f in factors if z3.is_int_value(f)]
    return math.prod(numbers), tuple(f for f in factors if not z3.is_int_value(f))


def flat(e: Any) -> list[Any]:
    """Factors of a product, nested ones too."""
    return [f for c in e.children() for f in flat(c)] if z3.is_mul(e) else [e]


def divided(terms: list[Term], step: tuple[Any, ...]) -> tuple[list[Term], list[Term]]:
    """Terms that a product divides, without it, and the others."""
    high, low = [], []
    for coefficient, factors in terms:
        left = without(factors, step)
        if left is None:
            low.append((coefficient, factors))
        else:
            high.append((coefficient, left))
    return high, low


def without(factors: tuple[Any, ...], step: tuple[Any, ...]) -> tuple[Any, ...] | None:
    """Factors less those of a product; None where one is missing."""
    left = list(factors)
    for s in step:
        at = next((i for i, f in enumerate(left) if z3.eq(f, s)), None)
        if at is None:
            return None
        left.pop(at)
    return tuple(left)


def shares(e: Any, radices: list[Any]) -> Any:
    """A sum of products over several radices; None where one doesn't divide every term."""
    terms = polynomial(e)
    for times, step in radices:
        terms = [(c / times, without(f, step)) for c, f in terms]  # type: ignore[misc]
        if any(f is None or c != int(c) for c, f in terms):
            return None
        terms = [(int(c), f) for c, f in terms]
    return total(terms)


def product(factors: tuple[Any, ...]) -> Any:
    out = whole(1)
    for i, f in enumerate(factors):
        out = f if i == 0 else out * f
    return out


def total(terms: list[Term]) -> Any:
    return z3.Sum([coefficient * product(factors) for coefficient, factors in terms]) if terms else whole(0)
