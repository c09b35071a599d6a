"""Field domain: numbers are random residues in two rings, so equal formulas agree and different ones hardly ever.

After Mirage (Wu et al., Mirage: a multi-level superoptimizer for tensor programs, OSDI 2025) and Li & Wu (ITCS 2026,
arXiv 2506.04529), with real fields: P = 2Q + 1 and Q are primes of 23 bits, g has order Q
modulo P and exp(x) is g^(x mod Q) modulo P, which has exp(a + b) = exp(a) exp(b). What is exponentiated once is known
modulo P alone; a second exp is Unsupported. Agreement of polynomials and quotients of degree d is wrong with
probability d/Q a draw (Schwartz–Zippel); for formulas with exp there is no proved bound.

Comparisons use a random total order that is odd (a < b means -b < -a) and makes no number special; constants compare as
the numbers that they are. Logarithms are kept by their exponential. sqrt is x^((P+1)/4), which keeps
sqrt(ab) = sqrt(a) sqrt(b); other functions are random functions of their argument (odd or even where they are).
Infinities are flags: exp(-inf) = 0, inf - inf = NaN. A masked load without ``other`` gives fresh random numbers.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from ...errors import Unsupported
from ..program import Type
from ..values import INTS, bits
from . import magic
from . import residues as r
from .base import Domain
from .constants import Number, number
from .field_value import SQUARED, FieldValue, shared_base, to_base, unknown
from .machine import to_int

P, Q = r.P, r.Q
INF, NAN = math.inf, math.nan


class Field(Domain):
    """One draw: ``seed`` fixes generator, order, opaque constants and opaque functions. Values of different draws must
    not meet."""

    name = "field"

    def __init__(self, seed: int = 0):
        super().__init__()
        self.seed = seed
        self.random_numbers = torch.Generator().manual_seed(seed)
        self.g = pow(int(self._draw(())) % (P - 3) + 2, 2, P)
        self.order = [float(self._draw(()) % (P - 1) + 1) for _ in range(3)]
        self.named: dict[str, tuple[int, int | None]] = {}
        self.polynomials: dict[str, list[tuple[float, float]]] = {}

    def _draw(self, shape: tuple[int, ...]) -> Tensor:
        return torch.randint(1, Q, shape, generator=self.random_numbers)

    # -- making values
    def random(self, shape: tuple[int, ...]) -> FieldValue:
        """Independent random numbers: what an input tensor holds. One-dimensional ones serve as storages."""
        return FieldValue(torch.randint(0, P, shape, generator=self.random_numbers).double(),
                          torch.randint(0, Q, shape, generator=self.random_numbers).double())  # fmt: skip

    def poison(self, t: Type, shape: tuple[int, ...], where: str) -> FieldValue:
        return self.random(shape)

    def exact(self, values: Tensor) -> FieldValue:
        """Field numbers of given floats, exactly (infinities and NaN included)."""
        wide = values.double()
        return FieldValue(
            r.of_float(wide, P), r.of_float(wide, Q), x=wide, special=not bool(torch.isfinite(wide).all())
        )

    def constant(self, value: float, t: Type, where: str) -> FieldValue:
        if not math.isfinite(value):
            one = torch.tensor([value], dtype=torch.float64)
            return FieldValue(one, unknown(one), x=one, special=True)
        meant = number(value, t.elem)
        if meant.name:
            self.ledger.constant(where, meant.name, meant.error)
        return self.of_number(meant)

    def of_number(self, meant: Number) -> FieldValue:
        """A literal's number as a scalar of one lane."""
        p, q = self._residues(meant)

        def one(v: float) -> Tensor:
            return torch.tensor([v], dtype=torch.float64)

        return FieldValue(one(p), None if q is None else one(q), x=one(meant.value))

    def _residues(self, meant: Number) -> tuple[int, int | None]:
        if meant.exact is not None:
            n, d = meant.exact.numerator, meant.exact.denominator
            return n * pow(d, -1, P) % P, n * pow(d, -1, Q) % Q
        p, q = self.constant_residues(meant.name)
        return meant.sign * p % P, None if q is None else meant.sign * q % Q

    def constant_residues(self, name: str) -> tuple[int, int | None]:
        """Residues of a named constant: drawn once, those that depend on each other together."""
        if name not in self.named:
            self.named[name] = self._name(name)
        return self.named[name]

    def _name(self, name: str) -> tuple[int, int | None]:
        def get(n: str) -> tuple[int, int]:
            p, q = self.constant_residues(n)
            assert q is not None
            return p, q

        def inv(a: tuple[int, int]) -> tuple[int, int]:
            return pow(a[0], -1, P), pow(a[1], -1, Q)

        def times(a: tuple[int, int], b: tuple[int, int]) -> tuple[int, int]:
            return a[0] * b[0] % P, a[1] * b[1] % Q

        def root(a: tuple[int, int]) -> tuple[int, int]:
            return pow(a[0], (P + 1) // 4, P), pow(a[1], (Q + 1) // 4, Q)

        def whole(n: int) -> tuple[int, int]:
            return n % P, n % Q

        if name in ("ln(2)", "ln(10)", "pi"):
            return int(self._draw(())), int(self._draw(()))
        if name == "e":
            return self.g, None
        if name.startswith("sqrt(") and name[5:-1].isdigit():
            return root(whole(int(name[5:-1])))
        if name.startswith("1/sqrt("):
            inner = name[7:-1]
            return inv(root(times(whole(2), get("pi")) if inner == "2*pi" else whole(int(inner))))
        recipes = {
            "log2(e)": lambda: inv(get("ln(2)")), "log10(e)": lambda: inv(get("ln(10)")),
            "log2(10)": lambda: times(get("ln(10)"), get("log2(e)")), "log10(2)": lambda: inv(get("log2(10)")),
            "2*pi": lambda: times(whole(2), get("pi")), "pi/2": lambda: times(inv(whole(2)), get("pi")),
            "1/pi": lambda: inv(get("pi")), "sqrt(2)": lambda: root(whole(2)), "sqrt(pi)": lambda: root(get("pi")),
            "sqrt(2/pi)": lambda: root(times(whole(2), inv(get("pi")))),
            "2/sqrt(pi)": lambda: times(whole(2), inv(root(get("pi")))),
            "2*log2(e)": lambda: times(whole(2), get("log2(e)")),
            "2*sqrt(2/pi)": lambda: times(whole(2), get("sqrt(2/pi)")),
        }  # fmt: skip
        return recipes[name]()

    def scalar(self, value: Any, t: Type) -> Any:
        if isinstance(value, int | float):
            return self.constant(float(value), Type("f64"), "argument")
        return value

    # -- computing
    def apply(self, name: str, t: Type, args: tuple[Any, ...], where: str) -> FieldValue:
        from .field_functions import FUNCTIONS

        fn = FUNCTIONS.get(name)
        if fn is None:
            raise Unsupported(f"{name} in the field domain", where=where)
        for i, constant in enumerate(args[::-1] if name == "add" else ()):
            if magic.limit(name, t.elem, constant.x) and float(constant.x.reshape(-1)[0]) > 0:
                rounded = FUNCTIONS["rint"](self, where, args[i])
                return fn(self, where, *(rounded if j == i else a for j, a in enumerate(args)))
        return fn(self, where, *args)

    def plain(self, v: FieldValue, where: str) -> FieldValue:
        """``v``, unless it holds logarithms, of which nothing but their exponential is known."""
        if v.e is not None and bool((torch.isnan(v.p) & ~torch.isnan(v.e)).any()):
            raise Unsupported("a logarithm in value position in the field domain", where=where)
        return v

    def exponential_of(self, v: FieldValue, base: str, where: str) -> Tensor:
        """exp (or exp2, or their squares) of each entry modulo P: ``v.e`` where that is known, else through ``q``."""
        if v.e is not None and v.base.rstrip(SQUARED) != base.rstrip(SQUARED):
            raise Unsupported("the exponential of a logarithm to another base", where=where)
        if v.e is not None and v.base.endswith(SQUARED) and not base.endswith(SQUARED):
            raise Unsupported("the exponential of a logarithm that was scaled, in the field domain", where=where)
        if v.q is None:
            power = unknown(v.p)
        elif base[0] == "2":
            ln2 = self.constant_residues("ln(2)")[1]
            assert ln2 is not None
            power = r.mul(v.q, torch.tensor(float(ln2), dtype=torch.float64), Q)
        else:
            power = v.q
        out = r.exponential(power, self.g)
        if base.endswith(SQUARED):
            out = r.mul(out, out, P)
        e = to_base(v, base)
        if e is not None:
            out = torch.where(torch.isnan(e), out, e)
        if v.special:
            out = torch.where(torch.isinf(v.p), torch.where(v.p > 0, v.p, torch.zeros_like(v.p)), out)
        missing = torch.isnan(out) & (~torch.isnan(v.p) if v.e is None else ~(torch.isnan(v.p) & torch.isnan(v.e)))
        if bool(missing.any()):
            raise Unsupported("an exponential of an exponential in the field domain", where=where)
        return out

    def key(self, v: FieldValue) -> Tensor:
        """Place in the random order; infinities at its ends."""
        if v.k is None:
            a, b, c = (torch.tensor(n, dtype=torch.float64) for n in self.order)
            t = r.mul(v.p, a, P)
            size = r.mul(r.mul(t, t, P), b, P)
            out = torch.where(r.mul(v.p, c, P) < P / 2, size, -size)
            v.k = torch.where(torch.isinf(v.p), v.p, out) if v.special else out
        return v.k

    def sides(self, a: FieldValue, b: FieldValue, where: str) -> tuple[Tensor, Tensor]:
        """Two tensors whose float order is the order of the values."""
        if a.x is not None and b.x is not None:
            return a.x, b.x
        if a.e is None and b.e is None:
            return self.key(a), self.key(b)
        base = shared_base([a, b], where)
        pair = [FieldValue(self.exponential_of(v, base, where), None, special=v.special) for v in (a, b)]
        return self.key(pair[0]), self.key(pair[1])

    def compare(self, predicate: str, a: FieldValue, b: FieldValue, where: str) -> Tensor:
        from .machine import compare

        return compare(predicate, *self.sides(a, b, where))

    def classify(self, name: str, a: FieldValue, where: str) -> Tensor:
        if name == "isinf":
            return torch.isinf(a.p)
        missing = torch.isnan(a.p) if a.e is None else torch.isnan(a.p) & torch.isnan(a.e)
        if name == "isnan":
            return missing
        if name == "isfinite":
            return ~(missing | torch.isinf(a.p))
        return self.sides(a, self.exact(torch.zeros(1)), where)[0] < 0

    def select(self, mask: Tensor, a: FieldValue, b: FieldValue) -> FieldValue:
        return FieldValue.combine(lambda ts: torch.where(mask, ts[0], ts[1]), [a, b])

    def cast(self, x: FieldValue, source: Type, target: Type, rounding: str, where: str) -> FieldValue:
        if bits(target.elem) < bits(source.elem):
            self.ledger.cast(where, source.elem, target.elem, x.numel())
        return x

    def from_int(self, x: Tensor, signed: bool, source: Type, target: Type, where: str) -> FieldValue:
        if x.dtype == torch.bool:
            x = -x.to(torch.int64) if signed else x.to(torch.int64)
        elif not signed and bits(source.elem) < 64:
            x = x.to(torch.int64) & ((1 << bits(source.elem)) - 1)
        wide = x.to(torch.int64)
        return FieldValue((wide % P).double(), (wide % Q).double(), x=wide.double())

    def to_int(self, x: FieldValue, source: Type, target: Type, signed: bool, where: str) -> Tensor:
        if x.x is None:
            raise Unsupported("an integer made from data in the field domain", where=where)
        return to_int(x.x, bits(target.elem), signed).to(INTS[target.elem])

    def dot(self, a: FieldValue, b: FieldValue, c: FieldValue, ta: Type, tb: Type, t: Type, precision: str,
            where: str) -> FieldValue:  # fmt: skip
        for v in (a, b, c):
            self.plain(v, where)
        p = r.add(r.matmul(a.p, b.p, P), c.p, P)
        known = all(v.q is not None and not bool(torch.isnan(v.q).any()) for v in (a, b, c))
        q = r.add(r.matmul(a.q, b.q, Q), c.q, Q) if known else None  # type: ignore[arg-type]
        return FieldValue(p, q, special=c.special)

    # -- memory
    def take(self, storage: FieldValue, index: Tensor) -> FieldValue:
        return storage.map(lambda t: t.index_select(0, index))

    def put(self, storage: FieldValue, index: Tensor, values: FieldValue) -> FieldValue:
        storage.x = storage.k = None
        storage.special |= values.special
        storage.p[index] = values.p
        if storage.q is not None or values.q is not None:
            storage.q = unknown(storage.p).clone() if storage.q is None else storage.q
            storage.q[index] = unknown(values.p) if values.q is None else values.q
        if storage.e is not None or values.e is not None:
            base = shared_base([storage, values])
            mine, theirs = to_base(storage, base), to_base(values, base)
            storage.e = unknown(storage.p).clone() if mine is None else mine
            storage.e[index] = unknown(values.p) if theirs is None else theirs
            storage.base = base
        return storage

    def add_at(self, storage: FieldValue, index: Tensor, values: FieldValue, t: Type) -> FieldValue:
        self.plain(storage, "atomic")
        self.plain(values, "atomic")
        p = storage.p.index_add(0, index, values.p)
        p = torch.where(torch.isinf(p), p, r.mod(p, P))
        q = None
        if storage.q is not None:
            q = r.mod(storage.q.index_add(0, index, unknown(values.p) if values.q is None else values.q), Q)
        return FieldValue(p, q, special=storage.special or values.special)

    def cast_storage(self, storage: Any, elem: str, name: str) -> FieldValue:
        value = self.exact(storage) if isinstance(storage, Tensor) else storage.map(torch.clone)
        if value.q is None:
            value.q = unknown(value.p).clone()
        value.k = None
        return value

    def equal(self, a: FieldValue, b: FieldValue) -> Tensor:
        """Where two values agree: modulo P, modulo Q where both are known there, by exponentials for logarithms; NaN
        agrees with NaN, infinities with their like."""
        if a.e is not None or b.e is not None:
            base = shared_base([a, b])
            ea, eb = (self.exponential_of(v, base, "comparison") for v in (a, b))
            return (ea == eb) | (torch.isnan(ea) & torch.isnan(eb))
        out = (a.p == b.p) | (torch.isnan(a.p) & torch.isnan(b.p))
        if a.q is not None and b.q is not None:
            both = ~(torch.isnan(a.q) | torch.isnan(b.q))
            out = out & (~both | (a.q == b.q))
        return out
