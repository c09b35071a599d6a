"""Terms in a person's words: ``exp(x[0,3] - max_{j<37} x[0,j])``, sums folded, nothing longer than a line."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from .constants import number
from .symbolic import Node

LONGEST = 400
DEEPEST = 24
TOO_LARGE = "(a term too large to show)"
FOLDED = 3
MOST_POWER = 8
SUMS = ("add", "sub", "fma", "dot")
PRODUCTS = ("mul", "div", "rcp", "neg")
LARGEST = {"maxnum": "max", "maximum": "max", "minnum": "min", "minimum": "min"}
_PLACE = re.compile(r"\d+(?=[,\]+])")
_LETTERS = "jklmnpqrstuvw"


@dataclass(frozen=True)
class Term:
    """One addend: ``sign`` times the product of ``top`` over that of ``bottom`` (node numbers); ``where`` it is
    added."""

    sign: int
    top: tuple[int, ...]
    bottom: tuple[int, ...]
    where: str

    def times(self, other: Term) -> Term:
        """The product of two; the place is the other's."""
        return Term(self.sign * other.sign, self.top + other.top, self.bottom + other.bottom, other.where or self.where)


class Reading:
    """Nodes of a slice (``Symbolic.needed``) seen as sums of products."""

    def __init__(self, nodes: dict[int, Node]):
        self.nodes = nodes
        self._texts: dict[int, str] = {}

    # -- structure
    def product(self, i: int) -> Term:
        """A node as one product."""
        sign = 1
        top: list[int] = []
        bottom: list[int] = []
        stack = [(i, True)]
        while stack:
            at, above = stack.pop()
            node = self.nodes[at]
            if node.op == "neg":
                sign = -sign
                stack.append((node.args[0], above))
            elif node.op == "mul":
                stack += [(a, above) for a in reversed(node.args)]
            elif node.op == "div":
                stack += [(node.args[1], not above), (node.args[0], above)]
            elif node.op == "rcp":
                stack.append((node.args[0], not above))
            elif n := self.power(node):
                stack += [(node.args[0], above)] * n
            elif node.value != 1 or node.op not in ("literal", "given"):
                (top if above else bottom).append(at)
        return Term(sign, tuple(top), tuple(bottom), self.nodes[i].where)

    def power(self, node: Node) -> int:
        """The exponent of a small whole power, or 0."""
        if node.op != "pow" or self.nodes[node.args[1]].op not in ("literal", "given"):
            return 0
        n = self.nodes[node.args[1]].value
        return int(n) if n == int(n) and 2 <= n <= MOST_POWER else 0

    def multiplies(self, i: int) -> bool:
        """Whether a node is a product."""
        return self.nodes[i].op in PRODUCTS or self.power(self.nodes[i]) > 0

    def sum(self, i: int) -> list[Term]:
        """A node as addends, as they are written; those that are exactly zero are left out."""
        found, stack = [], [(i, 1, self.nodes[i].where)]
        while stack:
            at, sign, where = stack.pop()
            node = self.nodes[at]
            if node.op == "neg":
                stack.append((node.args[0], -sign, where))
            elif node.op in ("add", "sub"):
                second = -sign if node.op == "sub" else sign
                stack += [(node.args[1], second, node.where), (node.args[0], sign, node.where)]
            elif node.op in ("fma", "dot"):
                stack.append((node.args[-1], sign, node.where))
                pairs = zip(node.args[:-1:2], node.args[1:-1:2], strict=True)
                found += [self._pair(a, b, sign, node.where) for a, b in pairs if self.live(a) and self.live(b)]
            elif node.value != 0:
                made = self.product(at)
                found.append(Term(made.sign * sign, made.top, made.bottom, where))
        return found

    def live(self, i: int) -> bool:
        return self.nodes[i].value != 0

    def _pair(self, a: int, b: int, sign: int, where: str) -> Term:
        made = self.product(a).times(self.product(b))
        return Term(made.sign * sign, made.top, made.bottom, where)

    def extremes(self, i: int) -> list[int]:
        """What a maximum (or minimum) is taken of, without infinities."""
        op, found, stack = LARGEST[self.nodes[i].op], [], [i]
        while stack:
            at = stack.pop()
            node = self.nodes[at]
            if LARGEST.get(node.op) == op:
                stack += reversed(node.args)
            elif math.isfinite(node.value):
                found.append(at)
        return list(dict.fromkeys(found))

    # -- text
    def text(self, i: int, deep: int = 0) -> str:
        """A node in words."""
        if i not in self._texts:
            made = TOO_LARGE if deep > DEEPEST else self._text(self.nodes[i], i, deep)
            self._texts[i] = made if len(made) <= LONGEST else TOO_LARGE
        return self._texts[i]

    def _text(self, node: Node, i: int, deep: int) -> str:
        if node.op == "input":
            return f"{node.name}[{','.join(map(str, node.index))}]" if node.index else node.name
        if node.op in ("literal", "given"):
            return plain(float(node.name) if node.op == "literal" else node.value, node.elem or "f64")
        if node.op == "undefined":
            return "undefined memory"
        if node.op in SUMS:
            return self.total(self.sum(i), deep + 1)
        if self.multiplies(i):
            made = self.product(i)
            return ("-" if made.sign < 0 else "") + self.term(made, deep + 1)
        if node.op in LARGEST:
            return fold(LARGEST[node.op], [self.text(a, deep + 1) for a in self.extremes(i)])
        return f"{node.op}({', '.join(self.text(a, deep + 1) for a in node.args)})"

    def term(self, t: Term, deep: int = 0) -> str:
        """A product without its sign."""
        numbers_first = sorted(t.top, key=lambda f: self.nodes[f].op not in ("literal", "given"))
        top = powers([self.factor(f, deep) for f in numbers_first]) or ["1"]
        if "0" in top:
            return "0"
        bottom = powers([self.factor(f, deep) for f in t.bottom])
        below = f"/{bottom[0]}" if len(bottom) == 1 else f"/({'*'.join(bottom)})" if bottom else ""
        return clip("*".join(top) + below)

    def factor(self, i: int, deep: int) -> str:
        text = self.text(i, deep + 1)
        return f"({text})" if text.startswith(("sum_", "-")) or (self.nodes[i].op in SUMS and " " in text) else text

    def total(self, terms: Sequence[Term], deep: int = 0) -> str:
        """A sum, like terms folded."""
        if not terms:
            return "0"
        plus = [self.term(t, deep) for t in terms if t.sign > 0]
        minus = [self.term(t, deep) for t in terms if t.sign < 0]
        parts = [*fold_all("sum", plus), *(f"- {p}" for p in fold_all("sum", minus))]
        out = " + ".join(parts).replace("+ - ", "- ")
        return clip(out if not out.startswith("- ") else f"-{out[2:]}")


def powers(factors: Sequence[str]) -> list[str]:
    """Equal factors as powers: ``x^2``."""
    counts = {f: factors.count(f) for f in factors}
    return [
        f if n == 1 else f"({f})^{n}" if " " in f and not f.startswith("(") else f"{f}^{n}" for f, n in counts.items()
    ]


def clip(text: str) -> str:
    return text if len(text) <= LONGEST else TOO_LARGE


def plain(value: float, elem: str = "f64") -> str:
    """A number as a person would write it: by name, else with few digits."""
    if not math.isfinite(value):
        return str(value)
    meant = number(value, elem)
    if meant.name:
        return f"-{meant.name}" if meant.sign < 0 else meant.name
    if meant.exact is not None and 1 < meant.exact.denominator < 1000 and len(f"{meant.value:.12g}") > 12:
        return f"{meant.exact.numerator}/{meant.exact.denominator}"
    return f"{meant.value:.12g}"


def fold(word: str, texts: Sequence[str]) -> str:
    """``max_{j<37} x[0,j]``, or the arguments one by one."""
    parts = fold_all(word, texts)
    return parts[0] if len(parts) == 1 else clip(f"{word}({', '.join(parts)})")


def fold_all(word: str, texts: Sequence[str]) -> list[str]:
    """Texts that differ in indices alone put into one, with an index that runs."""
    groups: dict[str, list[str]] = {}
    for t in texts:
        groups.setdefault(_PLACE.sub("#", t), []).append(t)
    out: list[str] = []
    for same in groups.values():
        one = running(word, same) if len(same) >= FOLDED else ""
        if one:
            out.append(one)
        elif len(same) > FOLDED:
            out += [same[0], f"(… {len(same) - 1} more like it)"]
        else:
            out += same
    return out


def running(word: str, texts: Sequence[str]) -> str:
    """One text for several, if one index explains all that varies."""
    rows = [[int(n) for n in _PLACE.findall(t)] for t in texts]
    columns = list(zip(*rows, strict=True))
    varying = [c for c in columns if len(set(c)) > 1]
    if not varying:
        return f"{len(texts)}*{texts[0]}" if word == "sum" else texts[0]
    base = varying[0]
    letter = next((x for x in _LETTERS if not re.search(rf"\b{x}\b|_{{{x}", texts[0])), "")
    named = {}
    for c in set(varying):
        steps = {a - b for a, b in zip(c, base, strict=True)}
        if len(steps) != 1 or not letter:
            return ""
        step = steps.pop()
        named[c] = letter + (f"+{step}" if step > 0 else str(step) if step else "")
    kept = iter(named.get(c, str(c[0])) for c in columns)
    body = _PLACE.sub(lambda _: next(kept), texts[0])
    low, high = min(base), max(base)
    span = f"{letter}<{high + 1}" if low == 0 else f"{letter}={low}..{high}"
    if len(set(base)) != len(base):
        return ""
    if len(base) != high - low + 1:
        span = f"{len(base)} {letter} in {low}..{high}"
    return f"{word}_{{{span}}} {body}"
