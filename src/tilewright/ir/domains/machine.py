"""Machine domain: floats are the tensors that the hardware would hold.

fp16, bf16, fp32, fp64 and fp8 are torch dtypes, so every operation rounds once to its result type. Declared choices,
where hardware leaves room: a dot's products and their sum within one ``tt.dot`` are exact (float64 over float16,
bfloat16, fp8, tf32 and fp32 products, which it holds exactly) and rounded once together with the accumulator;
reductions run as a halving tree (ops/reduce.py); multiply and add are not fused unless the IR says fma; division, sqrt
and transcendental functions are correctly rounded or torch's (the device's ``div.full``, ``ex2.approx`` differ by a few
ulps). A tf32 dot takes its operands' upper 19 bits, as Triton's code does on Hopper, where no conversion precedes the
tensor core (seen on an H200, wgmma and mma.sync; Triton 3.6); ``Machine(tf32="nearest")`` rounds them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal

import torch
from torch import Tensor

from ...errors import Unsupported
from ..program import Type
from ..values import FLOATS, INTS, bits
from .base import Domain

_FP8 = (torch.float8_e4m3fn, torch.float8_e5m2, torch.float8_e4m3fnuz, torch.float8_e5m2fnuz)
_CARRIER = {8: torch.int8, 16: torch.int16, 32: torch.int32, 64: torch.int64}


def dtype_of(t: Type, where: str = "") -> torch.dtype:
    """Torch dtype of a float type; Unsupported for one that torch lacks."""
    try:
        return FLOATS[t.elem]
    except KeyError:
        raise Unsupported(f"float type {t.elem}", where=where or None) from None


class Machine(Domain):
    """``tf32`` says how fp32 operands of a tf32 dot are narrowed: ``truncate`` or ``nearest`` (ties away).
    ``masked_zero``: a masked load without ``other`` gives 0 there, as NVIDIA's back end does, though Triton's language
    leaves the value undefined; else it gives NaN."""

    name = "machine"

    def __init__(self, tf32: Literal["truncate", "nearest"] = "truncate", masked_zero: bool = False) -> None:
        super().__init__()
        self.masked_zero = masked_zero
        self.tf32 = tf32_truncated if tf32 == "truncate" else tf32_nearest

    def constant(self, value: float, t: Type, where: str) -> Tensor:
        return torch.tensor([value], dtype=torch.float64).to(dtype_of(t, where))

    def poison(self, t: Type, shape: tuple[int, ...], where: str) -> Tensor:
        return torch.full(shape, math.nan).to(dtype_of(t, where))

    def apply(self, name: str, t: Type, args: tuple[Any, ...], where: str) -> Tensor:
        fn = FUNCTIONS.get(name)
        if fn is None:
            raise Unsupported(f"{name} in the machine domain", where=where)
        dtype = dtype_of(t, where)
        if dtype in _FP8:
            return _saturate(fn(*[a.float() if isinstance(a, Tensor) and a.dtype in _FP8 else a for a in args]), dtype)
        return fn(*args).to(dtype)

    def compare(self, predicate: str, a: Tensor, b: Tensor, where: str) -> Tensor:
        if a.dtype in _FP8:
            a, b = a.float(), b.float()
        return compare(predicate, a, b)

    def classify(self, name: str, a: Tensor, where: str) -> Tensor:
        return getattr(torch, name)(a.float() if a.dtype in _FP8 else a)

    def select(self, mask: Tensor, a: Tensor, b: Tensor) -> Tensor:
        if a.dtype in _FP8:
            return torch.where(mask, a.view(torch.uint8), b.view(torch.uint8)).view(a.dtype)
        return torch.where(mask, a, b)

    def cast(self, x: Tensor, source: Type, target: Type, rounding: str, where: str) -> Tensor:
        dtype = dtype_of(target, where)
        if bits(target.elem) < bits(source.elem):
            self.ledger.cast(where, source.elem, target.elem, x.numel())
        if rounding == "rtz" and bits(target.elem) < bits(source.elem):
            return _toward_zero(x, dtype)
        if dtype in _FP8:
            return _saturate(x, dtype)
        return x.to(dtype)

    def from_int(self, x: Tensor, signed: bool, source: Type, target: Type, where: str) -> Tensor:
        dtype = dtype_of(target, where)
        if not signed and x.dtype != torch.bool:
            width = bits(source.elem)
            if width < 64:
                x = x.to(torch.int64) & ((1 << width) - 1)
            else:
                high = (x >> 1) & 0x7FFFFFFFFFFFFFFF | (x & 1)
                return torch.where(x < 0, high.to(dtype) * 2, x.to(dtype))
        elif signed and x.dtype == torch.bool:
            x = -x.to(torch.int8)
        return x.to(dtype)

    def to_int(self, x: Tensor, source: Type, target: Type, signed: bool, where: str) -> Tensor:
        return to_int(x.double(), bits(target.elem), signed).to(INTS[target.elem])

    def to_bits(self, x: Tensor, source: Type, where: str) -> Tensor:
        return x.contiguous().view(_CARRIER[bits(source.elem)])

    def from_bits(self, x: Tensor, target: Type, where: str) -> Tensor:
        return x.contiguous().view(dtype_of(target, where))

    def dot(self, a: Tensor, b: Tensor, c: Tensor, ta: Type, tb: Type, t: Type, precision: str, where: str) -> Tensor:
        total: Tensor | None = None
        for x, y in operands_of(a, b, ta, tb, precision, self.tf32):
            part = x.double() @ y.double()
            total = part if total is None else total + part
        assert total is not None
        return (total + c.double()).to(dtype_of(t, where))

    def take(self, storage: Tensor, index: Tensor) -> Tensor:
        if storage.dtype in _FP8 and isinstance(storage, Tensor):
            return storage.view(torch.uint8).index_select(0, index).view(storage.dtype)
        return storage.index_select(0, index)

    def put(self, storage: Tensor, index: Tensor, values: Tensor) -> Tensor:
        if storage.dtype in _FP8 and isinstance(storage, Tensor):
            storage.view(torch.uint8)[index] = values.contiguous().view(torch.uint8)
        else:
            storage[index] = values
        return storage

    def add_at(self, storage: Tensor, index: Tensor, values: Tensor, t: Type) -> Tensor:
        return storage.index_add_(0, index, values)

    def equal(self, a: Tensor, b: Tensor) -> Tensor:
        carrier = _CARRIER[a.element_size() * 8]
        return a.contiguous().view(carrier) == b.contiguous().view(carrier)


def operands_of(
    a: Tensor, b: Tensor, ta: Type, tb: Type, precision: str, tf32: Callable[[Tensor], Tensor]
) -> list[tuple[Tensor, Tensor]]:
    """Pairs whose products sum to the dot, as the precision asks: tf32 narrows, the ``x3``/``x6`` forms split."""
    if ta.elem != "f32" or tb.elem != "f32" or precision == "ieee":
        return [(a, b)]
    if precision == "tf32":
        return [(tf32(a), tf32(b))]
    if precision == "tf32x3":
        return _split(a, b, tf32_nearest, 2, 2)
    if precision == "bf16x3":
        return _split(a, b, lambda x: x.bfloat16().float(), 2, 2)
    if precision == "bf16x6":
        return _split(a, b, lambda x: x.bfloat16().float(), 3, 3)
    raise Unsupported(f"dot with input precision {precision}")


def _split(
    a: Tensor, b: Tensor, narrow: Callable[[Tensor], Tensor], parts: int, order: int
) -> list[tuple[Tensor, Tensor]]:
    """Products of the leading ``parts`` of each operand whose ranks sum to less than ``order``."""

    def pieces(x: Tensor) -> list[Tensor]:
        out = []
        for _ in range(parts):
            head = narrow(x)
            out.append(head)
            x = torch.where(torch.isfinite(x), x - head, torch.zeros_like(x))
        return out

    pa, pb = pieces(a), pieces(b)
    return [(pa[i], pb[j]) for i in range(parts) for j in range(parts) if i + j < order]


def tf32_truncated(x: Tensor) -> Tensor:
    """fp32 cut to tf32's 10-bit mantissa: what a tensor core does with fp32 bits."""
    cut = (x.contiguous().view(torch.int32) & ~0x1FFF).view(torch.float32)
    return torch.where(torch.isfinite(x), cut, x)


def tf32_nearest(x: Tensor) -> Tensor:
    """fp32 rounded to tf32's 10-bit mantissa, to nearest, ties away from zero (``cvt.rna.tf32.f32``)."""
    raw = x.contiguous().view(torch.int32)
    rounded = ((raw + 0x1000) & ~0x1FFF).view(torch.float32)
    return torch.where(torch.isfinite(x), rounded, x)


def _saturate(x: Tensor, dtype: torch.dtype) -> Tensor:
    """Cast to fp8 as the hardware does (``satfinite``): beyond the largest finite value stays there."""
    top = torch.finfo(dtype).max
    return x.float().clamp(-top, top).to(dtype)


def _toward_zero(x: Tensor, dtype: torch.dtype) -> Tensor:
    """Cast with truncation: the nearest value, stepped back where it overshot."""
    near = _saturate(x, dtype) if dtype in _FP8 else x.to(dtype)
    over = near.double().abs() > x.double().abs()
    carrier = _CARRIER[near.element_size() * 8]
    return torch.where(over, near.contiguous().view(carrier) - 1, near.contiguous().view(carrier)).view(dtype)


def to_int(x: Tensor, width: int, signed: bool) -> Tensor:
    """Truncation to an integer that saturates; NaN gives 0 (``cvt.rzi``). Result is int64, unsigned ones wrapped."""
    low, high = (-(2.0 ** (width - 1)), 2.0 ** (width - 1)) if signed else (0.0, 2.0**width)
    t = torch.nan_to_num(x.trunc(), nan=0.0, posinf=high, neginf=low)
    if width < 64:
        return t.clamp(low, high - 1).to(torch.int64)
    if signed:
        whole = t.clamp(low, 2.0**62).to(torch.int64)
        big = torch.where(
            t >= high, torch.full_like(whole, 2**63 - 1), (t - 2.0**62).clamp(0, 2.0**62).to(torch.int64) + 2**62
        )
        return torch.where(t > 2.0**62, big, whole)
    t = t.clamp(0.0, high)
    low_half = t.clamp(max=2.0**62).to(torch.int64)
    upper = (t - 2.0**63).clamp(0, 2.0**63 - 2048).to(torch.int64) + (-(2**63))
    mid = (t - 2.0**62).clamp(0, 2.0**62).to(torch.int64) + 2**62
    out = torch.where(t > 2.0**62, mid, low_half)
    out = torch.where(t >= 2.0**63, upper, out)
    return torch.where(t >= high, torch.full_like(out, -1), out)


def compare(predicate: str, a: Tensor, b: Tensor) -> Tensor:
    """MLIR float comparison: ``o…`` is false for NaN, ``u…`` true."""
    if predicate in ("true", "false"):
        return torch.full(torch.broadcast_shapes(a.shape, b.shape), predicate == "true")
    base = {"eq": torch.eq, "ne": torch.ne, "lt": torch.lt, "le": torch.le, "gt": torch.gt, "ge": torch.ge}
    if predicate in ("ord", "uno"):
        unordered = torch.isnan(a) | torch.isnan(b)
        return unordered if predicate == "uno" else ~unordered
    out = base[predicate[1:]](a, b)
    if predicate == "one":
        return out & ~(torch.isnan(a) | torch.isnan(b))
    if predicate[0] == "u" and predicate != "une":
        return out | torch.isnan(a) | torch.isnan(b)
    return out


def _fma(a: Tensor, b: Tensor, c: Tensor) -> Tensor:
    """One rounding: the product is exact in the wider type. For float64, torch's two roundings."""
    wide = torch.float64 if a.dtype in (torch.float32, torch.float64) else torch.float32
    return a.to(wide) * b.to(wide) + c.to(wide)


def _wide(fn: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """``fn`` computed in float64, to be rounded once."""
    return lambda *args: fn(*[a.double() for a in args])


def _clamp(x: Tensor, low: Tensor, high: Tensor) -> Tensor:
    return torch.fmin(torch.fmax(x, low), high)


def _clamp_nan(x: Tensor, low: Tensor, high: Tensor) -> Tensor:
    return torch.minimum(torch.maximum(x, low), high)


def _rcbrt(x: Tensor) -> Tensor:
    return 1 / _cbrt(x)


def _cbrt(x: Tensor) -> Tensor:
    return x.sign() * x.abs().pow(1.0 / 3.0)


def _round_away(x: Tensor) -> Tensor:
    return torch.where((x - x.trunc()).abs() >= 0.5, x.trunc() + x.sign(), x.trunc())


FUNCTIONS: dict[str, Callable[..., Tensor]] = {
    "add": torch.add, "sub": torch.sub, "mul": torch.mul, "div": torch.div, "rem": torch.fmod, "neg": torch.neg,
    "abs": torch.abs, "fma": _fma, "maxnum": torch.fmax, "minnum": torch.fmin, "maximum": torch.maximum,
    "minimum": torch.minimum, "clamp": _clamp, "clamp_nan": _clamp_nan, "exp": torch.exp, "exp2": _wide(torch.exp2),
    "log": torch.log, "log2": torch.log2, "log10": torch.log10, "log1p": torch.log1p, "expm1": torch.expm1,
    "sin": torch.sin, "cos": torch.cos, "tan": torch.tan, "asin": torch.asin, "acos": torch.acos, "atan": torch.atan,
    "sinh": torch.sinh, "cosh": torch.cosh, "tanh": torch.tanh, "asinh": torch.asinh, "acosh": torch.acosh,
    "atanh": torch.atanh, "sqrt": torch.sqrt, "rsqrt": _wide(torch.rsqrt), "erf": torch.erf, "erfc": torch.erfc,
    "erfinv": torch.erfinv, "floor": torch.floor, "ceil": torch.ceil, "trunc": torch.trunc, "rint": torch.round,
    "round": _round_away, "pow": torch.pow, "atan2": torch.atan2, "copysign": torch.copysign, "hypot": torch.hypot,
    "lgamma": torch.lgamma, "sigmoid": torch.sigmoid, "cbrt": _wide(_cbrt), "rcbrt": _wide(_rcbrt),
    "exp10": lambda x: torch.pow(10.0, x.double()), "fdim": lambda a, b: (a - b).clamp(min=0),
    "rcp": lambda x: 1 / x, "ldexp": lambda x, n: torch.ldexp(x.double(), n), "nextafter": torch.nextafter,
    "saturate": lambda x: torch.nan_to_num(x, nan=0.0).clamp(0, 1), "sinpi": _wide(lambda x: torch.sin(math.pi * x)),
    "cospi": _wide(lambda x: torch.cos(math.pi * x)), "j0": torch.special.bessel_j0, "j1": torch.special.bessel_j1,
    "i0": torch.special.i0, "i1": torch.special.i1, "normcdf": torch.special.ndtr, "normcdfinv": torch.special.ndtri,
    "erfcx": torch.special.erfcx, "tgamma": lambda x: torch.special.gammaln(x).exp(),
}  # fmt: skip
