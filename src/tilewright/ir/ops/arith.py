"""arith: exact integers with the hardware's wraparound, and the domain's floats."""

from __future__ import annotations

import re
import struct as pack
from typing import Any

import torch
from torch import Tensor

from ...errors import Unsupported
from ..memory import poison
from ..program import Op, Type
from ..values import INTS, Ptr, bits, int_dtype, struct_n
from . import rule

_LOW = {"i1": 0, "i8": -(2**7), "i16": -(2**15), "i32": -(2**31), "i64": -(2**63), "index": -(2**63)}

# -- constants


@rule("arith.constant")
def constant(ev: Any, op: Op) -> Any:
    cached = ev.constants.get(id(op))
    if cached is None:
        cached = ev.constants[id(op)] = _constant(ev, op)
    return cached


def _constant(ev: Any, op: Op) -> Any:
    t, text = op.type, op.attrs["value"]
    scalar = Type(t.elem)
    if t.shape and ("[" in text or (text.startswith("0x") and len(text) > 2 + 2 * bits(t.elem) // 8)):
        return _dense(ev, op, t, text)
    value = literal(ev, text, scalar, op.loc)
    return ev.splat(value, t.shape)


def literal(ev: Any, text: str, t: Type, where: str) -> Any:
    """One scalar literal as a value of shape ``(1,)``."""
    if not t.is_float:
        if text in ("true", "false"):
            return torch.tensor([text == "true"])
        return torch.tensor([int(text)], dtype=int_dtype(t.elem))
    return ev.domain.constant(float_of(text, t), t, where)


def float_of(text: str, t: Type) -> float:
    """Python float of an MLIR float literal, decimal or in hexadecimal bits."""
    if not text.startswith("0x"):
        return float(text)
    raw = int(text, 16)
    if t.elem == "f64":
        return pack.unpack("<d", pack.pack("<Q", raw))[0]
    if t.elem == "f32":
        return pack.unpack("<f", pack.pack("<I", raw))[0]
    if t.elem == "f16":
        return pack.unpack("<e", pack.pack("<H", raw))[0]
    if t.elem == "bf16":
        return pack.unpack("<f", pack.pack("<I", raw << 16))[0]
    from ..values import FLOATS

    return float(torch.tensor([raw], dtype=torch.uint8).view(FLOATS[t.elem]).float())


def _dense(ev: Any, op: Op, t: Type, text: str) -> Any:
    if text.startswith("0x"):
        raise Unsupported("a dense constant in hexadecimal bytes", where=op.loc)
    parts = re.findall(r"[^\s\[\],]+", text)
    values = [literal(ev, p, Type(t.elem), op.loc) for p in parts]
    return ev.reshape(struct_n(values, lambda ts: torch.cat(list(ts)).unsqueeze(0)), t.shape)


# -- integers


def unsigned(x: Tensor, elem: str) -> Tensor:
    """``x`` read as unsigned, in int64; 64-bit values stay as they are."""
    if x.dtype == torch.bool:
        return x.to(torch.int64)
    width = bits(elem)
    return x.to(torch.int64) & ((1 << width) - 1) if width < 64 else x


@rule("arith.addi")
def addi(ev: Any, op: Op, a: Tensor, b: Tensor) -> Tensor:
    return a ^ b if a.dtype == torch.bool else a + b


@rule("arith.subi")
def subi(ev: Any, op: Op, a: Tensor, b: Tensor) -> Tensor:
    return a ^ b if a.dtype == torch.bool else a - b


@rule("arith.muli")
def muli(ev: Any, op: Op, a: Tensor, b: Tensor) -> Tensor:
    return a & b if a.dtype == torch.bool else a * b


@rule("arith.andi")
def andi(ev: Any, op: Op, a: Tensor, b: Tensor) -> Tensor:
    return a & b


@rule("arith.ori")
def ori(ev: Any, op: Op, a: Tensor, b: Tensor) -> Tensor:
    return a | b


@rule("arith.xori")
def xori(ev: Any, op: Op, a: Tensor, b: Tensor) -> Tensor:
    return a ^ b


def _guard(ev: Any, op: Op, a: Tensor, b: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Operands fit for division: zero divisors replaced by 1 (recorded), and where they were."""
    zero = b == 0
    if bool(zero.any()):
        ev.memory.undefined_value("integer division by zero", op.loc, int(zero.sum()))
        b = torch.where(zero, torch.ones_like(b), b)
    return a, b, zero


@rule("arith.divsi")
def divsi(ev: Any, op: Op, a: Tensor, b: Tensor) -> Tensor:
    a, b, zero = _guard(ev, op, a, b)
    minus = b == -1
    q = torch.div(a, torch.where(minus, torch.ones_like(b), b), rounding_mode="trunc")
    return torch.where(zero, torch.full_like(q, -1), torch.where(minus, -a, q))


@rule("arith.remsi")
def remsi(ev: Any, op: Op, a: Tensor, b: Tensor) -> Tensor:
    a, b, _ = _guard(ev, op, a, b)
    safe = torch.where(b == -1, torch.ones_like(b), b)
    return a - torch.div(a, safe, rounding_mode="trunc") * safe


@rule("arith.floordivsi")
def floordivsi(ev: Any, op: Op, a: Tensor, b: Tensor) -> Tensor:
    a, b, zero = _guard(ev, op, a, b)
    q = torch.div(a, b, rounding_mode="floor")
    return torch.where(zero, torch.full_like(q, -1), q)


@rule("arith.ceildivsi")
def ceildivsi(ev: Any, op: Op, a: Tensor, b: Tensor) -> Tensor:
    a, b, zero = _guard(ev, op, a, b)
    q = torch.div(a, b, rounding_mode="floor")
    q = q + (q * b != a).to(q.dtype)
    return torch.where(zero, torch.full_like(q, -1), q)


def _udivmod(a: Tensor, b: Tensor, elem: str) -> tuple[Tensor, Tensor]:
    if bits(elem) < 64:
        ua, ub = unsigned(a, elem), unsigned(b, elem)
        q = torch.div(ua, ub, rounding_mode="floor")
        return q.to(a.dtype), (ua - q * ub).to(a.dtype)
    wide_a, wide_b = torch.broadcast_tensors(a, b)
    na, nb = wide_a.contiguous().numpy().view("uint64"), wide_b.contiguous().numpy().view("uint64")
    return torch.from_numpy((na // nb).view("int64")), torch.from_numpy((na % nb).view("int64"))


@rule("arith.divui")
def divui(ev: Any, op: Op, a: Tensor, b: Tensor) -> Tensor:
    a, b, zero = _guard(ev, op, a, b)
    q = _udivmod(a, b, op.type.elem)[0]
    return torch.where(zero, torch.full_like(q, -1), q)


@rule("arith.remui")
def remui(ev: Any, op: Op, a: Tensor, b: Tensor) -> Tensor:
    a, b, _ = _guard(ev, op, a, b)
    return _udivmod(a, b, op.type.elem)[1]


def _amount(b: Tensor, elem: str) -> tuple[Tensor, Tensor]:
    """Shift amount made safe, and where it is the width or more (or negative, which is huge as unsigned)."""
    far = (b < 0) | (b >= bits(elem))
    return torch.where(far, torch.zeros_like(b), b), far


@rule("arith.shli")
def shli(ev: Any, op: Op, a: Tensor, b: Tensor) -> Tensor:
    n, far = _amount(b, op.type.elem)
    return torch.where(far, torch.zeros_like(a), a << n)


@rule("arith.shrsi")
def shrsi(ev: Any, op: Op, a: Tensor, b: Tensor) -> Tensor:
    n, far = _amount(b, op.type.elem)
    return torch.where(far, torch.where(a < 0, -torch.ones_like(a), torch.zeros_like(a)), a >> n)


@rule("arith.shrui")
def shrui(ev: Any, op: Op, a: Tensor, b: Tensor) -> Tensor:
    elem = op.type.elem
    n, far = _amount(b, elem)
    if bits(elem) < 64:
        out = (unsigned(a, elem) >> n.to(torch.int64)).to(a.dtype)
    else:
        keep = torch.where(n == 0, torch.full_like(n, -1), (torch.ones_like(n) << (64 - n).clamp(max=63)) - 1)
        keep = torch.where(n == 1, torch.full_like(n, 2**63 - 1), keep)
        out = (a >> n) & keep
    return torch.where(far, torch.zeros_like(out), out)


_COMPARE = {"eq": torch.eq, "ne": torch.ne, "lt": torch.lt, "le": torch.le, "gt": torch.gt, "ge": torch.ge}


def _ordered(x: Tensor, elem: str, signed: bool) -> Tensor:
    """``x`` as a tensor whose signed order is the one asked for."""
    if x.dtype == torch.bool:
        return -x.to(torch.int8) if signed else x.to(torch.int8)
    return x if signed else x ^ _LOW[elem]


@rule("arith.cmpi")
def cmpi(ev: Any, op: Op, a: Any, b: Any) -> Tensor:
    predicate = op.attrs["words"][0]
    if isinstance(a, Ptr):
        a, b = ev.address(a), ev.address(b)
    if predicate in ("eq", "ne"):
        return _COMPARE[predicate](a, b)
    elem = ev.types[op.operands[0]].elem
    signed = predicate[0] == "s"
    return _COMPARE[predicate[1:]](_ordered(a, elem, signed), _ordered(b, elem, signed))


def _extreme(op: Op, a: Tensor, b: Tensor, signed: bool, largest: bool) -> Tensor:
    elem = op.type.elem
    first = _ordered(a, elem, signed) > _ordered(b, elem, signed)
    return torch.where(first if largest else ~first, a, b)


@rule("arith.maxsi")
def maxsi(ev: Any, op: Op, a: Tensor, b: Tensor) -> Tensor:
    return torch.maximum(a, b) if a.dtype != torch.bool else _extreme(op, a, b, True, True)


@rule("arith.minsi")
def minsi(ev: Any, op: Op, a: Tensor, b: Tensor) -> Tensor:
    return torch.minimum(a, b) if a.dtype != torch.bool else _extreme(op, a, b, True, False)


@rule("arith.maxui")
def maxui(ev: Any, op: Op, a: Tensor, b: Tensor) -> Tensor:
    return _extreme(op, a, b, False, True)


@rule("arith.minui")
def minui(ev: Any, op: Op, a: Tensor, b: Tensor) -> Tensor:
    return _extreme(op, a, b, False, False)


@rule("arith.extsi", "arith.index_cast")
def extsi(ev: Any, op: Op, x: Tensor) -> Tensor:
    dtype = int_dtype(op.type.elem)
    return -x.to(dtype) if x.dtype == torch.bool else x.to(dtype)


@rule("arith.extui", "arith.index_castui")
def extui(ev: Any, op: Op, x: Tensor) -> Tensor:
    return unsigned(x, ev.types[op.operands[0]].elem).to(int_dtype(op.type.elem))


@rule("arith.trunci")
def trunci(ev: Any, op: Op, x: Tensor) -> Tensor:
    if op.type.elem == "i1":
        return (x & 1).to(torch.bool)
    return x.to(int_dtype(op.type.elem))


def high_product(a: Tensor, b: Tensor, elem: str, signed: bool) -> Tensor:
    """Upper half of the double-width product."""
    width = bits(elem)
    if width <= 32:
        wide = a.to(torch.int64) * b.to(torch.int64) if signed else unsigned(a, elem) * unsigned(b, elem)
        return (wide >> width).to(a.dtype)
    low = (1 << 32) - 1
    a0, a1, b0, b1 = a & low, (a >> 32) & low, b & low, (b >> 32) & low
    mid = a1 * b0 + ((a0 * b0) >> 32 & low)
    cross = a0 * b1 + (mid & low)
    high = a1 * b1 + (mid >> 32 & low) + (cross >> 32 & low)
    if signed:
        high = high - torch.where(a < 0, b, torch.zeros_like(b)) - torch.where(b < 0, a, torch.zeros_like(a))
    return high


@rule("tt.mulhiui")
def mulhiui(ev: Any, op: Op, a: Tensor, b: Tensor) -> Tensor:
    return high_product(a, b, op.type.elem, False)


@rule("arith.mulsi_extended", "arith.mului_extended")
def mul_extended(ev: Any, op: Op, a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    return a * b, high_product(a, b, op.type.elem, op.name == "arith.mulsi_extended")


@rule("arith.addui_extended")
def addui_extended(ev: Any, op: Op, a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    total, elem = a + b, op.type.elem
    return total, _ordered(total, elem, False) < _ordered(a, elem, False)


# -- selection and floats


@rule("arith.select")
def select(ev: Any, op: Op, mask: Tensor, a: Any, b: Any) -> Any:
    rank = len(op.type.shape)
    if mask.dim() == 1 and rank:
        mask = mask.reshape(-1, *([1] * rank))
    return ev.select(mask, a, b, op.type)


_FLOAT = {"arith.addf": "add", "arith.subf": "sub", "arith.mulf": "mul", "arith.divf": "div", "arith.remf": "rem",
          "arith.negf": "neg", "arith.maxnumf": "maxnum", "arith.minnumf": "minnum", "arith.maximumf": "maximum",
          "arith.minimumf": "minimum"}  # fmt: skip


@rule(*_FLOAT)
def float_op(ev: Any, op: Op, *args: Any) -> Any:
    return ev.domain.apply(_FLOAT[op.name], op.type, args, op.loc)


@rule("arith.cmpf")
def cmpf(ev: Any, op: Op, a: Any, b: Any) -> Tensor:
    return ev.domain.compare(op.attrs["words"][0], a, b, op.loc)


@rule("arith.extf", "arith.truncf", "tt.fp_to_fp")
def float_cast(ev: Any, op: Op, x: Any) -> Any:
    rounding = str(op.attrs.get("rounding", "rtne"))
    return ev.domain.cast(x, ev.types[op.operands[0]], op.type, rounding, op.loc)


@rule("arith.sitofp", "arith.uitofp")
def int_to_float(ev: Any, op: Op, x: Tensor) -> Any:
    return ev.domain.from_int(x, op.name == "arith.sitofp", ev.types[op.operands[0]], op.type, op.loc)


@rule("arith.fptosi", "arith.fptoui")
def float_to_int(ev: Any, op: Op, x: Any) -> Tensor:
    source, signed = ev.types[op.operands[0]], op.name == "arith.fptosi"
    out = ev.domain.to_int(x, source, op.type, signed, op.loc)
    if op.operands[0] in ev.fixed and isinstance(x, Tensor):
        width = bits(op.type.elem)
        low, high = (-(2.0 ** (width - 1)), 2.0 ** (width - 1)) if signed else (0.0, 2.0**width)
        real = x.detach().double().trunc()
        lost = ~((real >= low) & (real < high))
        if bool(lost.any()):  # a device saturates, but a constant is folded by the compiler, to anything
            ev.memory.undefined_value("constant out of range", op.loc, int(lost.sum()))
            out = torch.where(lost, poison(ev.domain, Type(op.type.elem), tuple(out.shape), op.loc), out)
    return out


@rule("arith.bitcast", "tt.bitcast")
def bitcast(ev: Any, op: Op, x: Any) -> Any:
    source, target = ev.types[op.operands[0]], op.type
    if isinstance(x, Ptr):
        return ev.recast(x, target.pointee, op.loc)
    if source.elem == target.elem:
        return x
    raw = ev.domain.to_bits(x, source, op.loc) if source.is_float else x
    if target.is_float:
        return ev.domain.from_bits(raw, target, op.loc)
    return raw.to(INTS[target.elem])
