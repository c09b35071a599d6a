"""Elementary functions of the field domain. Each keeps the laws named in its line and no others."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from ...errors import Unsupported
from ..program import Type
from . import residues as r
from .field_value import SQUARED, FieldValue, shared_base, unknown

if TYPE_CHECKING:
    from .field import Field

P, Q = r.P, r.Q
_SCALAR = Type("f64")
Function = Callable[..., FieldValue]


def _true(fn: Callable[..., Tensor], *args: FieldValue) -> Tensor | None:
    """The function on the true numbers, where all arguments are constants."""
    if any(a.x is None for a in args):
        return None
    return fn(*[a.x for a in args])


def _both(fn: Callable[[Tensor, Tensor, int], Tensor], a: FieldValue, b: FieldValue) -> Tensor | None:
    return None if a.q is None or b.q is None else fn(a.q, b.q, Q)


def add(f: Field, where: str, a: FieldValue, b: FieldValue) -> FieldValue:
    p = r.add(a.p, b.p, P)
    e, base = None, ""
    if a.e is not None or b.e is not None:
        base = shared_base([a, b], where)
        e = _product_with_infinities(f.exponential_of(a, base, where), f.exponential_of(b, base, where))
        p = torch.where(
            torch.isinf(a.p) & torch.isnan(b.p), a.p, torch.where(torch.isinf(b.p) & torch.isnan(a.p), b.p, p)
        )
    return FieldValue(p, _both(r.add, a, b), e, base, _true(torch.add, a, b), None, a.special or b.special)


def _product_with_infinities(a: Tensor, b: Tensor) -> Tensor:
    out = r.mul(a, b, P)
    infinite = torch.isinf(a) | torch.isinf(b)
    return torch.where(infinite, a * b, out)


def neg(f: Field, where: str, a: FieldValue) -> FieldValue:
    e = None
    if a.e is not None:
        e = r.inverse(f.exponential_of(a, a.base, where), P)
    return FieldValue(r.neg(a.p, P), None if a.q is None else r.neg(a.q, Q), e, a.base, _true(torch.neg, a),
                      None if a.k is None else -a.k, a.special)  # fmt: skip


def sub(f: Field, where: str, a: FieldValue, b: FieldValue) -> FieldValue:
    return add(f, where, a, neg(f, where, b))


def mul(f: Field, where: str, a: FieldValue, b: FieldValue) -> FieldValue:
    for zero, other in ((a, b), (b, a)):
        if zero.x is not None and zero.e is None and bool(torch.all(zero.x == 0)):
            return _nothing(f, where, zero, other)
    if a.e is not None or b.e is not None:
        scaled = _scaled_logarithm(f, where, a, b)
        if scaled is not None:
            return scaled
    f.plain(a, where)
    f.plain(b, where)
    p = r.mul(a.p, b.p, P)
    if a.special or b.special:
        p = _infinite_product(f, where, a, b, p)
    return FieldValue(p, _both(r.mul, a, b), x=_true(torch.mul, a, b), special=a.special or b.special)


def _nothing(f: Field, where: str, zero: FieldValue, other: FieldValue) -> FieldValue:
    """The constant 0 times anything finite, logarithms included."""
    shape = torch.broadcast_shapes(zero.shape, other.shape)
    p = torch.zeros(shape, dtype=torch.float64)
    keep = f.classify("isfinite", other, where).expand(shape)
    if not bool(keep.all()):
        p = torch.where(keep, p, torch.full_like(p, float("nan")))
    return FieldValue(p, p, x=p)


def _infinite_product(f: Field, where: str, a: FieldValue, b: FieldValue, p: Tensor) -> Tensor:
    """Products of infinities: by sign where it is known; a factor of unknown sign is taken to be positive."""
    infinite = torch.isinf(a.p) | torch.isinf(b.p)
    if not bool(infinite.any()):
        return p
    signs = []
    for v in (a, b):
        finite = torch.ones_like(v.p) if v.x is None else torch.sign(v.x)
        if v.x is None and bool((infinite & torch.isfinite(v.p)).any()):
            f.ledger.assume(where, "a factor of an infinity is positive")
        finite = torch.where(v.p == 0, torch.zeros_like(v.p), finite)
        signs.append(torch.where(torch.isinf(v.p), v.p, finite))
    return torch.where(infinite, signs[0] * signs[1], p)


def _scaled_logarithm(f: Field, where: str, a: FieldValue, b: FieldValue) -> FieldValue | None:
    """A logarithm times ln 2 or log2 e, which changes its base; times a whole number; or times any number that is known
    modulo Q, of which the exponential's square is kept: (u²)^c has order Q, so c counts modulo Q."""
    log, factor = (a, b) if a.e is not None else (b, a)
    if factor.e is not None or factor.q is None or bool(torch.isnan(factor.q).any()):
        return None
    p = r.mul(log.p, factor.p, P)
    special = log.special or factor.special
    if special:
        p = _infinite_product(f, where, log, factor, p)
    q = _both(r.mul, log, factor)
    name, other = {"2": ("ln(2)", "e"), "e": ("log2(e)", "2")}[log.base[0]]
    squared = SQUARED if log.base.endswith(SQUARED) else ""
    if bool((factor.p == float(f.constant_residues(name)[0])).all()):
        e = f.exponential_of(log, log.base, where)
        return FieldValue(p, q, e.expand(p.shape), other + squared, special=special)
    n = _whole_number(factor)
    if n:
        power = r.power(f.exponential_of(log, log.base, where), abs(n), P)
        e = power if n > 0 else r.inverse(power, P)
        return FieldValue(p, q, _at_infinities(p, e.expand(p.shape)), log.base, special=special)
    base = log.base[0] + SQUARED
    e = r.power_of(f.exponential_of(log, base, where), factor.q, P)
    return FieldValue(p, q, _at_infinities(p, e.expand(p.shape)), base, special=special)


def _whole_number(v: FieldValue) -> int:
    """The small whole number that all of ``v`` is, or 0."""
    if v.x is None:
        return 0
    first = float(v.x.reshape(-1)[0])
    return int(first) if abs(first) <= 64 and first == int(first) and bool(torch.all(v.x == first)) else 0


def _at_infinities(p: Tensor, e: Tensor) -> Tensor:
    """Exponentials with those of infinities put right."""
    return torch.where(torch.isinf(p), torch.where(p > 0, p, torch.zeros_like(p)), e)


def inverse(f: Field, where: str, a: FieldValue) -> FieldValue:
    f.plain(a, where)
    p = r.inverse(a.p, P)
    if a.special:
        p = torch.where(torch.isinf(a.p), torch.zeros_like(p), p)
    return FieldValue(p, None if a.q is None else r.inverse(a.q, Q), x=_true(torch.reciprocal, a), special=False)


def div(f: Field, where: str, a: FieldValue, b: FieldValue) -> FieldValue:
    out = mul(f, where, a, inverse(f, where, b))
    out.x = _true(torch.div, a, b)
    return out


def fma(f: Field, where: str, a: FieldValue, b: FieldValue, c: FieldValue) -> FieldValue:
    return add(f, where, mul(f, where, a, b), c)


def exp(f: Field, where: str, a: FieldValue) -> FieldValue:
    p = f.exponential_of(a, "e", where)
    return FieldValue(p, None, x=_true(torch.exp, a), special=a.special)


def exp2(f: Field, where: str, a: FieldValue) -> FieldValue:
    p = f.exponential_of(a, "2", where)
    return FieldValue(p, None, x=_true(torch.exp2, a), special=a.special)


def exp10(f: Field, where: str, a: FieldValue) -> FieldValue:
    return exp(f, where, mul(f, where, a, _named(f, "ln(10)")))


def _named(f: Field, name: str) -> FieldValue:
    from .constants import NAMED, Number

    return f.of_number(Number(NAMED[name], None, name))


def _whole(f: Field, n: int) -> FieldValue:
    return f.exact(torch.tensor([float(n)]))


def log(f: Field, where: str, a: FieldValue, base: str = "e") -> FieldValue:
    """Known by its exponential; log 0 = -inf."""
    f.plain(a, where)
    p = torch.where(a.p == 0, torch.full_like(a.p, float("-inf")), torch.where(torch.isinf(a.p), a.p, unknown(a.p)))
    x = _true(torch.log if base == "e" else torch.log2, a)
    special = a.special or bool((a.p == 0).any())
    return FieldValue(p, None, a.p, base, x, None, special)


def log2(f: Field, where: str, a: FieldValue) -> FieldValue:
    return log(f, where, a, "2")


def log1p(f: Field, where: str, a: FieldValue) -> FieldValue:
    return log(f, where, add(f, where, a, _whole(f, 1)))


def expm1(f: Field, where: str, a: FieldValue) -> FieldValue:
    return sub(f, where, exp(f, where, a), _whole(f, 1))


def sigmoid(f: Field, where: str, a: FieldValue) -> FieldValue:
    return inverse(f, where, add(f, where, _whole(f, 1), exp(f, where, neg(f, where, a))))


def tanh(f: Field, where: str, a: FieldValue) -> FieldValue:
    twice = exp(f, where, add(f, where, a, a))
    return sub(
        f, where, _whole(f, 1), mul(f, where, _whole(f, 2), inverse(f, where, add(f, where, twice, _whole(f, 1))))
    )


def cosh(f: Field, where: str, a: FieldValue) -> FieldValue:
    both = add(f, where, exp(f, where, a), exp(f, where, neg(f, where, a)))
    return mul(f, where, both, inverse(f, where, _whole(f, 2)))


def sinh(f: Field, where: str, a: FieldValue) -> FieldValue:
    both = sub(f, where, exp(f, where, a), exp(f, where, neg(f, where, a)))
    return mul(f, where, both, inverse(f, where, _whole(f, 2)))


def sqrt(f: Field, where: str, a: FieldValue) -> FieldValue:
    """x^((P+1)/4): multiplicative, and a square root of every square."""
    f.plain(a, where)
    p = _unrepeated(a.p, lambda t: r.power(t, (P + 1) // 4, P))
    if a.special:
        p = torch.where(torch.isinf(a.p), a.p, p)
    q = None if a.q is None else _unrepeated(a.q, lambda t: r.power(t, (Q + 1) // 4, Q))
    return FieldValue(p, q, x=_true(torch.sqrt, a), special=a.special)


def _unrepeated(t: Tensor, fn: Callable[[Tensor], Tensor]) -> Tensor:
    """``fn`` on ``t`` with axes that a view repeats computed once."""
    small = t
    for d in range(t.dim()):
        if t.stride(d) == 0 and t.shape[d] > 1:
            small = small.narrow(d, 0, 1)
    return fn(small).expand(t.shape)


def rsqrt(f: Field, where: str, a: FieldValue) -> FieldValue:
    return inverse(f, where, sqrt(f, where, a))


def _pick(f: Field, mask: Tensor, a: FieldValue, b: FieldValue) -> FieldValue:
    return f.select(mask, a, b)


def _extreme(f: Field, where: str, a: FieldValue, b: FieldValue, largest: bool, nan_wins: bool) -> FieldValue:
    ka, kb = f.sides(a, b, where)
    first = (ka >= kb) if largest else (ka <= kb)
    na, nb = torch.isnan(ka), torch.isnan(kb)
    first = (first | na) if nan_wins else ((first | nb) & ~(na & ~nb))
    return _pick(f, first, a, b)


def maxnum(f: Field, where: str, a: FieldValue, b: FieldValue) -> FieldValue:
    return _extreme(f, where, a, b, True, False)


def minnum(f: Field, where: str, a: FieldValue, b: FieldValue) -> FieldValue:
    return _extreme(f, where, a, b, False, False)


def maximum(f: Field, where: str, a: FieldValue, b: FieldValue) -> FieldValue:
    return _extreme(f, where, a, b, True, True)


def minimum(f: Field, where: str, a: FieldValue, b: FieldValue) -> FieldValue:
    return _extreme(f, where, a, b, False, True)


def clamp(f: Field, where: str, x: FieldValue, low: FieldValue, high: FieldValue) -> FieldValue:
    return minnum(f, where, maxnum(f, where, x, low), high)


def clamp_nan(f: Field, where: str, x: FieldValue, low: FieldValue, high: FieldValue) -> FieldValue:
    return minimum(f, where, maximum(f, where, x, low), high)


def absolute(f: Field, where: str, a: FieldValue) -> FieldValue:
    """The order is odd, so abs(-x) = abs(x)."""
    f.plain(a, where)
    sign = a.x if a.x is not None else f.key(a)
    return _pick(f, sign >= 0, a, neg(f, where, a))


def opaque(name: str, parity: int = 0) -> Function:
    """A random function of one argument: equal arguments give equal values; odd (1) or even (-1) where asked."""

    def fn(f: Field, where: str, a: FieldValue) -> FieldValue:
        f.plain(a, where)
        p = _random_function(f, name, a.p, parity, 0, P)
        q = None if a.q is None else _random_function(f, name, a.q, parity, 1, Q)
        return FieldValue(torch.where(torch.isfinite(a.p), p, unknown(p)), q, x=_known(name, a))

    return fn


def _known(name: str, a: FieldValue) -> Tensor | None:
    from .machine import FUNCTIONS as TRUE

    return None if a.x is None else TRUE[name](a.x)


def _random_function(f: Field, name: str, x: Tensor, parity: int, ring: int, m: int) -> Tensor:
    if name not in f.polynomials:
        numbers = f._draw((6, 2)).tolist()
        f.polynomials[name] = [(float(a), float(b)) for a, b in numbers]
    arg = r.mul(x, x, m) if parity else x
    out = torch.zeros_like(x)
    for c in f.polynomials[name]:
        out = r.add(r.mul(out, arg, m), torch.full_like(out, c[ring]), m)
    return r.mul(out, x, m) if parity > 0 else out


def opaque_pair(name: str) -> Function:
    """A random function of two arguments."""

    def fn(f: Field, where: str, a: FieldValue, b: FieldValue) -> FieldValue:
        f.plain(a, where)
        f.plain(b, where)
        inner = opaque("rint")(f, where, b)
        mixed = add(f, where, mul(f, where, a, inner), b)
        p = _random_function(f, name, mixed.p, 0, 0, P)
        q = None if mixed.q is None else _random_function(f, name, mixed.q, 0, 1, Q)
        from .machine import FUNCTIONS as TRUE

        return FieldValue(p, q, x=_true(TRUE[name], a, b))

    return fn


def pow_(f: Field, where: str, a: FieldValue, b: FieldValue) -> FieldValue:
    """Whole and half exponents by multiplication and root; others opaque."""
    if b.x is not None and bool((b.x == b.x.reshape(-1)[0]).all()):
        n = float(b.x.reshape(-1)[0])
        if n == int(n) and abs(n) <= 64:
            f.plain(a, where)
            k = int(abs(n))
            out = FieldValue(r.power(a.p, k, P), None if a.q is None else r.power(a.q, k, Q), x=_true(torch.pow, a, b))
            return out if n >= 0 else inverse(f, where, out)
        if n in (0.5, -0.5):
            return sqrt(f, where, a) if n > 0 else rsqrt(f, where, a)
    if a.x is not None and bool((a.x == 2).all()):
        return exp2(f, where, b)
    return opaque_pair("pow")(f, where, a, b)


def unsupported(f: Field, where: str, *args: Any) -> FieldValue:
    raise Unsupported("this function in the field domain", where=where)


FUNCTIONS: dict[str, Function] = {
    "add": add, "sub": sub, "mul": mul, "div": div, "neg": neg, "fma": fma, "rcp": inverse, "exp": exp, "exp2": exp2,
    "exp10": exp10, "log": log, "log2": log2, "log1p": log1p, "expm1": expm1, "sigmoid": sigmoid, "tanh": tanh,
    "cosh": cosh, "sinh": sinh, "sqrt": sqrt, "rsqrt": rsqrt, "maxnum": maxnum, "minnum": minnum, "maximum": maximum,
    "minimum": minimum, "clamp": clamp, "clamp_nan": clamp_nan, "abs": absolute, "pow": pow_,
    "rem": opaque_pair("rem"), "atan2": opaque_pair("atan2"), "hypot": opaque_pair("hypot"),
}  # fmt: skip
FUNCTIONS |= {n: opaque(n, 1) for n in ("sin", "tan", "asin", "atan", "erf", "erfinv", "asinh", "cbrt", "trunc", "rint",
                                        "round", "sinpi")}  # fmt: skip
FUNCTIONS |= {n: opaque(n, -1) for n in ("cos", "cospi")}
FUNCTIONS |= {n: opaque(n) for n in ("floor", "ceil", "erfc", "acos", "acosh", "atanh", "lgamma", "normcdf", "log10")}
