"""What a float literal means: the exact number its author wrote, or a named irrational constant.

A kernel's ``1.4426950408889634`` reaches the IR as a rounded fp32. Compared exactly it would differ from log2(e) and
every kernel that uses exp2 would be "wrong". So a literal within one unit in the last place of a named constant stands
for that constant, and the literal's error is kept in the ledger; any other literal stands for the shortest decimal that
rounds to it. A constant cut to three digits is therefore still another number.
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

_MANTISSA = {"f16": 11, "bf16": 8, "f32": 24, "f64": 53}
NAMED = {
    "log2(e)": math.log2(math.e), "ln(2)": math.log(2.0), "log10(e)": math.log10(math.e), "ln(10)": math.log(10.0),
    "log2(10)": math.log2(10.0), "log10(2)": math.log10(2.0), "pi": math.pi, "2*pi": 2 * math.pi, "pi/2": math.pi / 2,
    "1/pi": 1 / math.pi, "sqrt(2)": math.sqrt(2.0), "1/sqrt(2)": math.sqrt(0.5), "sqrt(2/pi)": math.sqrt(2 / math.pi),
    "1/sqrt(2*pi)": 1 / math.sqrt(2 * math.pi), "2/sqrt(pi)": 2 / math.sqrt(math.pi), "sqrt(pi)": math.sqrt(math.pi),
    "2*log2(e)": 2 * math.log2(math.e), "2*sqrt(2/pi)": 2 * math.sqrt(2 / math.pi), "e": math.e,
}  # fmt: skip
LARGEST_ROOT = 1 << 20
LARGEST_F32 = float.fromhex("0x1.fffffep127")


@dataclass(frozen=True)
class Number:
    """``name`` is set for an irrational: one of NAMED, or ``1/sqrt(n)`` / ``sqrt(n)``; ``value`` is the best float64,
    ``exact`` the rational of the others; ``error`` how far the literal lies from it, relatively; ``sign`` -1 or 1
    applies to named ones."""

    value: float
    exact: Fraction | None
    name: str = ""
    sign: int = 1
    error: float = 0.0


@lru_cache(maxsize=4096)
def number(value: float, elem: str) -> Number:
    """The number that a finite literal of type ``elem`` stands for. ``f64`` also serves Python floats. What the IR prints
    has as few digits as it takes to tell the float (2**-32 as 2.32830644e-10), so it is rounded to ``elem`` first."""
    if elem == "f32" and abs(value) <= LARGEST_F32:
        (value,) = struct.unpack("f", struct.pack("f", value))
    if value == 0 or value == int(value) or _short(value):
        return Number(value, Fraction(value))
    size, sign = abs(value), 1 if value > 0 else -1
    unit = 2.0 ** (math.frexp(size)[1] - _MANTISSA.get(elem, 24))
    for name, target in NAMED.items():
        if abs(size - target) <= unit:
            return Number(sign * target, None, name, sign, (size - target) / target)
    if elem in ("f32", "f64"):
        root = _root(size, unit)
        if root is not None:
            name, target = root
            return Number(sign * target, None, name, sign, (size - target) / target)
        ratio = _ratio(value, elem)
        if ratio is not None:
            return Number(float(ratio), ratio, error=float((Fraction(value) - ratio) / ratio))
    exact = shortest(value, elem)
    return Number(float(exact), exact, error=float((Fraction(value) - exact) / exact))


def _short(value: float) -> bool:
    """Whether a float is a dyadic of few bits: written exactly, not rounded."""
    mantissa, _ = math.frexp(value)
    return (mantissa * 2**12).is_integer()


def _root(size: float, unit: float) -> tuple[str, float] | None:
    """``1/sqrt(n)`` or ``sqrt(n)`` for an integer n that is no square, if that is what ``size`` is."""
    whole = round(size * size) if 1 < size < math.sqrt(LARGEST_ROOT) else 0
    if whole > 1 and math.isqrt(whole) ** 2 != whole and abs(size - math.sqrt(whole)) <= unit:
        if math.sqrt(whole + 1) - math.sqrt(whole) > 64 * unit:
            return f"sqrt({whole})", math.sqrt(whole)
        return None
    n = round(1 / (size * size)) if size > 1 / math.sqrt(LARGEST_ROOT) else 0
    if n > 1 and math.isqrt(n) ** 2 != n and abs(size - 1 / math.sqrt(n)) <= unit and _telling(size, unit, n):
        return f"1/sqrt({n})", 1 / math.sqrt(n)
    return None


def _ratio(value: float, elem: str) -> Fraction | None:
    """The quotient of small integers that rounds to exactly ``value`` and is no short decimal: 1/3, 1/37."""
    most = 1 << 16 if elem == "f64" else 512
    found = Fraction(value).limit_denominator(most)
    if found.denominator < 3 or len(str(abs(shortest(value, elem).numerator))) < (15 if elem == "f64" else 7):
        return None
    gap = abs(Fraction(value) - found)
    return found if found and gap <= Fraction(2) ** (math.frexp(value)[1] - _MANTISSA.get(elem, 24) - 1) else None


def _telling(size: float, unit: float, n: int) -> bool:
    """Whether roots of neighbouring integers lie far apart compared with the literal's precision."""
    return abs(1 / math.sqrt(n) - 1 / math.sqrt(n + 1)) > 64 * unit


def shortest(value: float, elem: str) -> Fraction:
    """The decimal of fewest digits that rounds to ``value`` in ``elem``."""
    bits = _MANTISSA.get(elem, 24)
    half = Fraction(2) ** (math.frexp(abs(value))[1] - bits - 1)
    for digits in range(1, 18):
        candidate = Fraction(f"{value:.{digits - 1}e}")
        if abs(candidate - Fraction(value)) <= half:
            return candidate
    return Fraction(value)
