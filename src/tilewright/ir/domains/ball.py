"""Ball domain: rigorous enclosures of one element in real arithmetic, by midpoint and radius.

A run collects terms (``symbolic.py``); ``enclose`` evaluates those that one element needs in Arb's ball arithmetic
(Johansson, Arb: efficient arbitrary-precision midpoint-radius interval arithmetic, IEEE Trans. Comput. 66, 2017), with
more and more bits until the ball is small. Literals are the numbers that they stand for (constants.py), inputs the
floats that they are, so a ball holds the exact value of the formula; what depended on a comparison holds where
``doubtful`` finds no choice that rounding could have turned. Needs python-flint, from the extra ``prove``.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

import torch

from ...errors import EnvironmentProblem, Unsupported
from .constants import number
from .symbolic import Choice, Node, Symbolic

PRECISIONS = (96, 192, 384, 768, 1536)
SMALL = 2.0**-80
NEAR, TINY = 1e-9, 1e-290
MOST_CHOICES = 256


class Undecided(Unsupported):
    """No precision that was tried separates the value from a step of a function or from another value."""


class Late(Undecided):
    """The time for enclosures is up."""


def flint() -> Any:
    """python-flint, imported where it is first needed. Raises EnvironmentProblem without it."""
    try:
        import flint as module
    except ImportError:
        raise EnvironmentProblem("enclosures need python-flint", remedy="pip install 'tilewright[prove]'") from None
    return module


class Ball(Symbolic):
    """Terms whose elements can be enclosed."""

    name = "ball"

    def __init__(self, seconds: float = math.inf):
        super().__init__()
        self.seconds, self.deadline = seconds, time.monotonic() + seconds

    def enclose(self, root: int, small: float = SMALL) -> Any:
        """An ``arb`` that holds the value of node ``root``, of relative radius ``small`` unless it is (next to) zero.

        Raises Unsupported for functions without an enclosure, Undecided where a step can't be told or the time (of all
        enclosures together) is up."""
        nodes = self.needed(root)
        for bits in PRECISIONS:
            self._in_time()
            try:
                out = evaluate_all(nodes, bits)[root]
            except Undecided:
                if bits == PRECISIONS[-1]:
                    raise
                continue
            if not out.is_finite() or float(out.rad()) <= small * abs(float(out.mid())) or out == 0:
                break
        return out

    def gap(self, a: int, b: int) -> Any:
        """An enclosure of ``a - b``: until zero is outside of it, or it is small beside ``a``."""
        return self.gap_and(a, b)[0]

    def gap_and(self, a: int, b: int) -> tuple[Any, Any]:
        """Enclosures of ``a - b`` and of ``b``, as narrow as the first needs."""
        nodes = self.needed(a, b)
        for bits in PRECISIONS:
            self._in_time()
            found = evaluate_all(nodes, bits)
            x, y = found[a], found[b]
            with precision(bits):
                out = x - y
            size = max(abs(float(x.mid())), abs(float(y.mid())))
            if not out.contains(0) or float(out.abs_upper()) <= SMALL * size:
                break
        return out, y

    def _in_time(self) -> None:
        if time.monotonic() > self.deadline:
            raise Late(f"terms that take longer than {self.seconds:g} s to enclose")

    def doubtful(self) -> str:
        """The first comparison, conversion or order that this run's values decide and exact ones may not; empty if
        there is none. Sides further apart than ``NEAR`` are beyond what float64 loses; nearer ones are enclosed. Numbers
        below ``TINY``, which underflow, count as zero."""
        left = MOST_CHOICES
        for choice in self.choices:
            close = near_pairs(choice)
            left -= len(close)
            if left < 0:
                return f"more than {MOST_CHOICES} comparisons too close for float64"
            for a, b, wanted in close:
                if not self.settled(choice, a, b, wanted):
                    return f"a comparison of nearly equal numbers{f' at {choice.where}' if choice.where else ''}"
        return ""

    def settled(self, choice: Choice, a: int, b: int, out: bool) -> bool:
        """Whether exact values choose as float64 did."""
        try:
            if choice.kind == "integer":
                x = self.enclose(a)
                return (x.is_exact() or not x.contains_integer()) and math.trunc(float(x)) == math.trunc(
                    self.node(a).value
                )
            d = self.gap(a, b)
        except Unsupported:
            return False
        base = choice.kind[1:] if choice.kind[0] in "ou" else choice.kind
        if d == 0:
            return choice.kind == "order" or (base in ("eq", "le", "ge")) == out
        if d.contains(0):
            return False
        truth = {"eq": False, "ne": True, "lt": d < 0, "le": d < 0, "gt": d > 0, "ge": d > 0}
        return bool(truth.get(base, True)) == out


def near_pairs(choice: Choice) -> list[tuple[int, int, bool]]:
    """Nodes that a choice told apart though they lie within ``NEAR`` of each other."""
    a = choice.a
    if choice.kind == "order":
        return _neighbours(choice)
    if choice.b is None:
        off = (a.near - a.near.round()).abs()
        doubt = (off > 0) & (off <= NEAR * a.near.abs())
        return [(int(i), int(i), False) for i in a.ids.expand(a.shape)[doubt][: MOST_CHOICES + 1]]
    assert choice.out is not None
    shape = choice.out.shape
    x, y = a.near.expand(shape), choice.b.near.expand(shape)
    size = x.abs() + y.abs()
    doubt = ((x - y).abs() <= NEAR * size) & (size > TINY) & torch.isfinite(x) & torch.isfinite(y)
    ia, ib = (v.ids.expand(shape)[doubt][: MOST_CHOICES + 1].tolist() for v in (a, choice.b))
    return [p for p in zip(ia, ib, choice.out[doubt].tolist(), strict=False) if p[0] != p[1]]


def _neighbours(choice: Choice) -> list[tuple[int, int, bool]]:
    flat, order = choice.a.near.reshape(-1).sort()
    ids = choice.a.ids.expand(choice.a.shape).reshape(-1)[order]
    doubt = ((flat[1:] - flat[:-1]) <= NEAR * flat[1:].abs()) & (flat[1:].abs() > TINY)
    pairs = zip(ids[1:][doubt][: MOST_CHOICES + 1].tolist(), ids[:-1][doubt].tolist(), strict=False)
    return [(a, b, True) for a, b in pairs]


# -- evaluating


class precision:
    """Context with so many bits of working precision."""

    def __init__(self, bits: int):
        self.bits = bits

    def __enter__(self) -> None:
        self.context = flint().ctx
        self.held, self.context.prec = self.context.prec, self.bits

    def __exit__(self, *_: Any) -> None:
        self.context.prec = self.held


def evaluate_all(nodes: dict[int, Node], bits: int) -> dict[int, Any]:
    """The balls of all nodes, which come with their arguments before them."""
    arb = flint().arb
    done: dict[int, Any] = {}
    with precision(bits):
        for i, node in nodes.items():
            done[i] = _value(arb, node, done)
    return done


def _value(arb: Any, node: Node, done: dict[int, Any]) -> Any:
    if node.op in ("input", "given"):
        return arb(node.value)
    if node.op == "literal":
        return literal(arb, float(node.name), node.elem)
    if node.op == "undefined":
        raise Unsupported("an undefined value in the ball domain", where=node.where or None)
    args = [done[a] for a in node.args]
    if node.op == "dot":
        total = args[-1]
        for x, y in zip(args[:-1:2], args[1:-1:2], strict=True):
            total = total + x * y
        return total
    fn = FUNCTIONS.get(node.op)
    if fn is None:
        raise Unsupported(f"{node.op} in the ball domain", where=node.where or None)
    try:
        return fn(arb, *args)
    except Undecided:
        raise Undecided(f"{node.op} of a number too close to a step", where=node.where or None) from None


def literal(arb: Any, value: float, elem: str) -> Any:
    """What a literal stands for."""
    if not math.isfinite(value):
        return arb(value)
    meant = number(value, elem)
    if meant.exact is not None:
        return arb(flint().fmpq(meant.exact.numerator, meant.exact.denominator))
    return meant.sign * named(arb, meant.name)


def named(arb: Any, name: str) -> Any:
    """A named constant of ``constants.py``."""
    if name.startswith("1/sqrt(") and name[7:-1].isdigit():
        return 1 / arb(int(name[7:-1])).sqrt()
    if name.startswith("sqrt(") and name[5:-1].isdigit():
        return arb(int(name[5:-1])).sqrt()
    two, ten, pi = arb(2), arb(10), arb.pi()
    table: dict[str, Callable[[], Any]] = {
        "log2(e)": lambda: 1 / two.log(), "ln(2)": two.log, "log10(e)": lambda: 1 / ten.log(), "ln(10)": ten.log,
        "log2(10)": lambda: ten.log() / two.log(), "log10(2)": lambda: two.log() / ten.log(), "pi": lambda: pi,
        "2*pi": lambda: 2 * pi, "pi/2": lambda: pi / 2, "1/pi": lambda: 1 / pi,
        "sqrt(2/pi)": lambda: (2 / pi).sqrt(), "1/sqrt(2*pi)": lambda: 1 / (2 * pi).sqrt(),
        "2/sqrt(pi)": lambda: 2 / pi.sqrt(), "sqrt(pi)": pi.sqrt, "2*log2(e)": lambda: 2 / two.log(),
        "2*sqrt(2/pi)": lambda: 2 * (2 / pi).sqrt(), "e": arb(1).exp,
        "sqrt(2)": two.sqrt, "1/sqrt(2)": lambda: 1 / two.sqrt(),
    }  # fmt: skip
    return table[name]()


def _whole(x: Any, how: str) -> Any:
    """A step function where the ball lies on one step."""
    out = getattr(x, how)()
    if not out.is_exact():
        raise Undecided("a step")
    return out


def _trunc(arb: Any, x: Any) -> Any:
    return _whole(x, "floor") if x >= 0 else _whole(x, "ceil") if x <= 0 else _within_one(arb, x)


def _within_one(arb: Any, x: Any) -> Any:
    if x > -1 and x < 1:
        return arb(0)
    raise Undecided("a step")


def _rint(arb: Any, x: Any) -> Any:
    """To nearest, ties to even."""
    if x.is_exact() and (2 * x).is_integer() and not x.is_integer():
        low = x.floor()
        return low if (low / 2).is_integer() else low + 1
    return _whole(x + arb(0.5), "floor")


def _power(arb: Any, x: Any, y: Any) -> Any:
    if y.is_exact() and y.is_integer() and abs(float(y)) <= 64:
        n = int(float(y))
        return x**n if n >= 0 else 1 / x ** (-n)
    return x**y


def _sign(arb: Any, x: Any, y: Any) -> Any:
    if y.is_exact() and y == 0:
        raise Undecided("the sign of zero")
    if y.contains(0):
        raise Undecided("a sign")
    return abs(x) if y > 0 else -abs(x)


def _log_to(base: int) -> Callable[..., Any]:
    return lambda arb, x: x.log() / arb(base).log()


def _add(arb: Any, x: Any, y: Any) -> Any:
    return x + y


def _mul(arb: Any, x: Any, y: Any) -> Any:
    return x * y


def _sigmoid(arb: Any, x: Any) -> Any:
    return 1 / (1 + (-x).exp())


def _clamp(arb: Any, x: Any, low: Any, high: Any) -> Any:
    return x.max(low).min(high)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "add": _add, "sub": lambda arb, x, y: x - y, "mul": _mul, "div": lambda arb, x, y: x / y,
    "neg": lambda arb, x: -x, "abs": lambda arb, x: abs(x), "fma": lambda arb, x, y, z: x * y + z,
    "rcp": lambda arb, x: 1 / x, "sigmoid": _sigmoid, "rsqrt": lambda arb, x: x.rsqrt(), "pow": _power,
    "exp2": lambda arb, x: (x * arb(2).log()).exp(), "exp10": lambda arb, x: (x * arb(10).log()).exp(),
    "log2": _log_to(2), "log10": _log_to(10), "clamp": _clamp, "clamp_nan": _clamp, "copysign": _sign,
    "floor": lambda arb, x: _whole(x, "floor"), "ceil": lambda arb, x: _whole(x, "ceil"), "trunc": _trunc,
    "rint": _rint, "hypot": lambda arb, x, y: (x * x + y * y).sqrt(), "atan2": lambda arb, y, x: arb.atan2(y, x),
    "normcdf": lambda arb, x: (-x / arb(2).sqrt()).erfc() / 2, "fdim": lambda arb, x, y: (x - y).max(arb(0)),
    "sinpi": lambda arb, x: x.sin_pi(), "cospi": lambda arb, x: x.cos_pi(),
}  # fmt: skip
FUNCTIONS |= {n: (lambda arb, x, y: x.max(y)) for n in ("maxnum", "maximum")}
FUNCTIONS |= {n: (lambda arb, x, y: x.min(y)) for n in ("minnum", "minimum")}
FUNCTIONS |= {n: (lambda arb, x, n=n: getattr(x, n)()) for n in (
    "exp", "expm1", "log", "log1p", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh",
    "acosh", "atanh", "sqrt", "erf", "erfc", "erfinv", "lgamma")}  # fmt: skip
