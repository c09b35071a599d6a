"""Dots: plain, integer, and block-scaled (OCP Microscaling formats)."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ...errors import Unsupported
from ..program import Op, Type
from ..values import struct
from . import rule


@rule("tt.dot")
def dot(ev: Any, op: Op, a: Any, b: Any, c: Any) -> Any:
    ta, tb = ev.types[op.operands[0]], ev.types[op.operands[1]]
    precision = str(op.attrs.get("inputPrecision", "ieee"))
    if not ta.is_float:
        return (a.double() @ b.double()).to(torch.int64).to(c.dtype) + c
    if not (ta.elem == "f32" and tb.elem == "f32"):
        precision = "ieee"
    ev.domain.ledger.dot(op.loc, ta.elem, tb.elem, op.type.elem, precision, ta.shape[-1], a.shape[0] * op.type.numel)
    return ev.domain.dot(a, b, c, ta, tb, op.type, precision, op.loc)


_E2M1 = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)


@rule("tt.dot_scaled")
def dot_scaled(ev: Any, op: Op, *args: Any) -> Any:
    if ev.domain.name not in ("machine", "real"):
        raise Unsupported(f"dot_scaled in the {ev.domain.name} domain", where=op.loc)
    scaled = op.attrs["scaled"]
    queue = list(zip(args, (ev.types[o] for o in op.operands), strict=True))
    a, ta = queue.pop(0)
    sa = queue.pop(0) if scaled[0] else None
    b, tb = queue.pop(0)
    has_b_scale = len(queue) == 2
    sb = queue.pop(0) if has_b_scale else None
    c, _ = queue.pop(0)
    left = _operand(ev, op, a, ta, str(op.attrs["lhs"]), sa, True)
    right = _operand(ev, op, b, tb, str(op.attrs["rhs"]), sb, False)
    return ev.domain.cast(left @ right + c.double(), Type("f64", op.type.shape), op.type, "rtne", op.loc)


def _operand(ev: Any, op: Op, x: Tensor, t: Type, kind: str, scale: Any, left: bool) -> Tensor:
    """The operand in float64 with its scales applied; K is the last axis on the left, the one before on the right."""
    if kind == "e2m1":
        packed = op.attrs.get("lhs_k_pack" if left else "rhs_k_pack", True)
        axis = -1 if left else -2
        if not packed:
            axis = -2 if left else -1
        table = torch.tensor(_E2M1 + tuple(-v for v in _E2M1), dtype=torch.float64)
        bytes_ = x.to(torch.int64) & 0xFF
        pair = torch.stack([table[bytes_ & 15], table[bytes_ >> 4]], -1)
        if axis == -2:
            pair = pair.movedim(-1, -2)
            wide = pair.reshape(*x.shape[:-2], 2 * x.shape[-2], x.shape[-1])
        else:
            wide = pair.reshape(*x.shape[:-1], 2 * x.shape[-1])
    elif t.is_float:
        wide = x.double()
    else:
        kinds = {"e4m3": "f8E4M3FN", "e5m2": "f8E5M2", "bf16": "bf16", "fp16": "f16"}
        wide = ev.domain.from_bits(x, Type(kinds[kind], t.shape), op.loc).double()
    if scale is None:
        return wide
    factor, ts = scale
    if ts.is_float:
        power = factor.double()
    else:
        exponent = factor.to(torch.int64) & 0xFF
        power = torch.where(exponent == 255, torch.full((), float("nan"), dtype=torch.float64),
                            torch.pow(2.0, (exponent - 127).double()))  # fmt: skip
    group = wide.shape[-1 if left else -2] // power.shape[-1]
    power = power.repeat_interleave(group, -1)
    return wide * (power if left else power.transpose(-1, -2))


def shaped(x: Any, shape: tuple[int, ...]) -> Any:
    """Value with its tile reshaped."""
    return struct(x, lambda t: t.reshape(t.shape[0], *shape))
