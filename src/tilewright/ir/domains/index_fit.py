"""Which function of the sizes a launch's numbers are, told from the numbers at several sizes.

    value([20, 48, 6], {"M": [4, 8, 2], "N": [5, 6, 3]})  ->  "M*N"

A form is an expression over sizes in the words of task/tensors.py (``+ - * // min max``), found by trying: a constant, a
size, a product of sizes, a multiple or a rounded-up share of one, a sum of two, a product of two shares, a clamp. It must
give every number seen; what was never seen is an assumption, which is why claims say at how many sizes it was seen. Each
form is also a value of the index domain, with its range (``index_forms.py``); here is no solver.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence

from ...task.tensors import evaluate

Vector = tuple[int, ...]
POWERS = tuple(1 << i for i in range(1, 15))
MOST_PRODUCTS = 160
TIMES = (2, 4, 8)  # bytes of an element
FEWEST = 4  # places that a clamped form has to be told from


class Forms:
    """Forms of vectors of numbers, one entry a place; ``sizes`` are the places' sizes by name, ``shapes`` expressions
    that the task's tensors have, ``shares`` numbers by which launches may divide."""

    def __init__(self, sizes: Mapping[str, Sequence[int]], shapes: Sequence[str] = (), shares: Sequence[int] = ()):
        self.places = [dict(zip(sizes, v, strict=True)) for v in zip(*sizes.values(), strict=True)]
        self.shapes = tuple(shapes)
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
        for times in (1, *(t for t in TIMES if all(x % t == 0 for x in v))):
            part = tuple(x // times for x in v)
            for find in (self._linear, self._share, self._sums, self._clamped):
                if (found := next(find(part), None)) is not None:
                    return found if times == 1 else f"{times}*({found})"
        return None

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
            if all((x and y % x == 0) or (not x and not y) for x, y in zip(p, v, strict=True)):
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
            if len(free) < FEWEST:
                continue
            names = list(self.places[0])
            part = Forms({n: [self.places[i][n] for i in free] for n in names}, self.shapes, self.shares)
            free_numbers = tuple(v[i] for i in free)
            finds = (part._linear, part._share, part._sums)  # no clamp within a clamp: that would be tried without end
            found = next((form for find in finds for form in find(free_numbers)), None)
            if found is not None and all(
                _clamp(f, evaluate(found, p), end) == x for p, x in zip(self.places, v, strict=True)
            ):
                yield f"{f}({found},{end})"

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
