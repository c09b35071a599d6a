"""math, Triton's exact variants, and libdevice by symbol name."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ...errors import Unsupported
from ..domains.machine import FUNCTIONS
from ..program import Op, Type
from ..values import bits, int_dtype
from . import rule
from .arith import high_product, unsigned

_SAME = (
    "exp exp2 log log2 log10 log1p expm1 sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh sqrt rsqrt "
    "erf erfc floor ceil trunc round fma atan2 copysign cbrt"
)
_MATH = {f"math.{n}": n for n in _SAME.split()}
_MATH |= {"math.absf": "abs", "math.powf": "pow", "math.roundeven": "rint", "tt.precise_sqrt": "sqrt",
          "tt.precise_divf": "div"}  # fmt: skip


@rule(*_MATH)
def math_op(ev: Any, op: Op, *args: Any) -> Any:
    return ev.domain.apply(_MATH[op.name], op.type, args, op.loc)


@rule("tt.clampf")
def clampf(ev: Any, op: Op, x: Any, low: Any, high: Any) -> Any:
    name = "clamp_nan" if op.attrs.get("propagateNan") == "all" else "clamp"
    return ev.domain.apply(name, op.type, (x, low, high), op.loc)


@rule("math.absi")
def absi(ev: Any, op: Op, x: Tensor) -> Tensor:
    return x.abs()


@rule("math.ctpop")
def ctpop(ev: Any, op: Op, x: Tensor) -> Tensor:
    return _popcount(x, op.type.elem)


@rule("math.ctlz")
def ctlz(ev: Any, op: Op, x: Tensor) -> Tensor:
    return _leading_zeros(x, op.type.elem)


def _popcount(x: Tensor, elem: str) -> Tensor:
    total = torch.zeros_like(x)
    for i in range(bits(elem)):
        total += (x >> i) & 1
    return total


def _leading_zeros(x: Tensor, elem: str) -> Tensor:
    total, seen = torch.zeros_like(x), torch.zeros_like(x, dtype=torch.bool)
    for i in reversed(range(bits(elem))):
        seen |= ((x >> i) & 1) != 0
        total += (~seen).to(x.dtype)
    return total


# -- libdevice

_ALIAS = {"fabs": "abs", "fmax": "maxnum", "fmin": "minnum", "fmod": "rem", "powi": "pow", "nearbyint": "rint",
          "fast_exp": "exp", "fast_log": "log", "fast_log2": "log2", "fast_log10": "log10", "fast_sin": "sin",
          "fast_cos": "cos", "fast_tan": "tan", "fast_pow": "pow", "fast_fdivide": "div", "fast_exp10": "exp10",
          "fast_tanh": "tanh", "cyl_bessel_i0": "i0", "cyl_bessel_i1": "i1", "frcp_rn": "rcp", "drcp_rn": "rcp",
          "frsqrt_rn": "rsqrt", "saturate": "saturate"}  # fmt: skip
for _kind in ("f", "d"):
    _ALIAS |= {f"{_kind}{n}_rn": n for n in ("add", "sub", "mul", "div", "sqrt")}
_ALIAS["fma_rn"] = "fma"
_TESTS = {"isnan": "isnan", "isinf": "isinf", "finite": "isfinite", "isfinited": "isfinite", "signbit": "signbit",
          "isnand": "isnan", "isinfd": "isinf", "signbitd": "signbit"}  # fmt: skip
_ROUNDINGS = {"rn": "rint", "rz": "trunc", "rd": "floor", "ru": "ceil"}


def libdevice_name(symbol: str) -> str:
    """Our name of a libdevice function: ``__nv_tanhf`` → ``tanh``."""
    bare = symbol.removeprefix("__nv_")
    for name in (bare, bare.removesuffix("f")):
        if name in FUNCTIONS or name in _ALIAS or name in _TESTS:
            return _ALIAS.get(name, name)
    return bare


@rule("tt.extern_elementwise")
def extern_elementwise(ev: Any, op: Op, *args: Any) -> Any:
    symbol = str(op.attrs.get("symbol", ""))
    name = libdevice_name(symbol)
    if name in _TESTS:
        return ev.domain.classify(_TESTS[name], args[0], op.loc).to(int_dtype(op.type.elem))
    if op.type.is_float and name in FUNCTIONS and symbol.startswith("__nv_"):
        types = [ev.types[o] for o in op.operands]
        if name == "pow" and not types[1].is_float:
            args = (args[0], ev.domain.from_int(args[1], True, types[1], Type(op.type.elem, types[1].shape), op.loc))
        return ev.domain.apply(name, op.type, args, op.loc)
    out = _convert(ev, op, symbol.removeprefix("__nv_"), args)
    if out is None:
        raise Unsupported(f"external function '{symbol}'", where=op.loc)
    return out


def _convert(ev: Any, op: Op, name: str, args: tuple[Any, ...]) -> Any:
    """Integer functions and conversions of libdevice, or None."""
    source = ev.types[op.operands[0]]
    elem = op.type.elem
    if name in ("float_as_int", "float_as_uint", "double_as_longlong"):
        return ev.domain.to_bits(args[0], source, op.loc)
    if name in ("int_as_float", "uint_as_float", "longlong_as_double"):
        return ev.domain.from_bits(args[0], op.type, op.loc)
    if name in ("mulhi", "umulhi", "mul64hi", "umul64hi"):
        return high_product(args[0], args[1], elem, not name.startswith("u"))
    if name in ("popc", "popcll"):
        return _popcount(args[0], source.elem).to(int_dtype(elem))
    if name in ("clz", "clzll"):
        return _leading_zeros(args[0], source.elem).to(int_dtype(elem))
    if name in ("abs", "llabs"):
        return args[0].abs()
    if name in ("llrint", "llrintf", "lrintf", "rintll"):
        whole = ev.domain.apply("rint", Type(source.elem, op.type.shape), args, op.loc)
        return ev.domain.to_int(whole, source, op.type, True, op.loc)
    head, _, mode = name.rpartition("_")
    if mode in _ROUNDINGS and "2" in head:
        unsigned_int = head.split("2")[1].startswith("u") or head.startswith("u")
        if source.is_float and not op.type.is_float:
            whole = ev.domain.apply(_ROUNDINGS[mode], Type(source.elem, op.type.shape), args, op.loc)
            return ev.domain.to_int(whole, source, op.type, not unsigned_int, op.loc)
        if not source.is_float and op.type.is_float and mode == "rn":
            return ev.domain.from_int(args[0], not unsigned_int, source, op.type, op.loc)
        if source.is_float and op.type.is_float and mode in ("rn", "rz"):
            return ev.domain.cast(args[0], source, op.type, "rtne" if mode == "rn" else "rtz", op.loc)
    if name in ("ffs", "ffsll"):
        x = unsigned(args[0], source.elem)
        out = torch.zeros_like(x)
        for i in reversed(range(bits(source.elem))):
            out = torch.where(((x >> i) & 1) != 0, torch.full_like(x, i + 1), out)
        return out.to(int_dtype(elem))
    return None
