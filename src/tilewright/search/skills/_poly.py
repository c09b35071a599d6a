"""Integer polynomials over the names of a C file: enough to compare subscripts and to see who steps by how much."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ._c import Node, Source

WHOLE = {"int64_t", "size_t", "uint64_t", "ptrdiff_t", "long", "long long", "int"}
Monomial = tuple[str, ...]


@dataclass(frozen=True)
class Poly:
    """``terms``: sorted names of a monomial → its coefficient; zeros are left out."""

    terms: frozenset[tuple[Monomial, int]]

    @staticmethod
    def of(terms: Mapping[Monomial, int]) -> Poly:
        return Poly(frozenset((m, c) for m, c in terms.items() if c))

    @staticmethod
    def constant(n: int) -> Poly:
        return Poly.of({(): n})

    @staticmethod
    def name(n: str) -> Poly:
        return Poly.of({(n,): 1})

    def __add__(self, other: Poly) -> Poly:
        out = dict(self.terms)
        for m, c in other.terms:
            out[m] = out.get(m, 0) + c
        return Poly.of(out)

    def __neg__(self) -> Poly:
        return Poly.of({m: -c for m, c in self.terms})

    def __sub__(self, other: Poly) -> Poly:
        return self + -other

    def __mul__(self, other: Poly) -> Poly:
        out: dict[Monomial, int] = {}
        for m, c in self.terms:
            for n, d in other.terms:
                key = tuple(sorted(m + n))
                out[key] = out.get(key, 0) + c * d
        return Poly.of(out)

    @property
    def names(self) -> set[str]:
        return {n for m, _ in self.terms for n in m}

    @property
    def value(self) -> int | None:
        """The number, if it is one."""
        return next((c for m, c in self.terms), 0) if not self.names else None

    def step(self, name: str) -> Poly | None:
        """What it grows by when ``name`` grows by one; None where that depends on ``name`` itself."""
        out: dict[Monomial, int] = {}
        for m, c in self.terms:
            if m.count(name) > 1:
                return None
            if name in m:
                out[tuple(x for x in m if x != name)] = c
        return Poly.of(out)


def _whole(source: Source, node: Node | None) -> Node | None:
    """Without parentheses and casts between whole numbers; None for another cast, which may change the value."""
    while node is not None and node.type in ("parenthesized_expression", "cast_expression"):
        if node.type == "cast_expression" and source.text(node.child_by_field_name("type")) not in WHOLE:
            return None
        node = node.child_by_field_name("value") if node.type == "cast_expression" else node.named_children[0]
    return node


def poly(source: Source, node: Node | None, known: Mapping[str, Poly] | None = None) -> Poly | None:
    """The polynomial of an expression; None for what is none. ``known`` names are replaced by what they stand for."""
    node = _whole(source, node)
    if node is None:
        return None
    if node.type == "number_literal":
        try:
            return Poly.constant(int(source.text(node).rstrip("uUlL"), 0))
        except ValueError:
            return None
    if node.type == "identifier":
        name = source.text(node)
        return (known or {}).get(name, Poly.name(name))
    if node.type == "unary_expression" and source.text(node.child_by_field_name("operator")) == "-":
        inner = poly(source, node.child_by_field_name("argument"), known)
        return None if inner is None else -inner
    if node.type != "binary_expression":
        return None
    a, b = (poly(source, node.child_by_field_name(n), known) for n in ("left", "right"))
    if a is None or b is None:
        return None
    match source.text(node.child_by_field_name("operator")):
        case "+":
            return a + b
        case "-":
            return a - b
        case "*":
            return a * b
    return None
