"""Shapes: the rules here move elements and compute nothing, so they are the same in every domain."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ...errors import Unsupported
from ..memory import poison
from ..program import Op
from ..values import Ptr, lanes_of, struct, struct_n
from . import rule


@rule("tt.make_range")
def make_range(ev: Any, op: Op) -> Tensor:
    cached = ev.constants.get(id(op))
    if cached is None:
        cached = torch.arange(op.attrs["start"], op.attrs["end"], dtype=torch.int32).unsqueeze(0)
        ev.constants[id(op)] = cached
    return cached


@rule("tt.splat", "tt.unsplat")
def splat(ev: Any, op: Op, x: Any) -> Any:
    return ev.splat(x, op.type.shape) if op.name == "tt.splat" else struct(x, lambda t: t.reshape(t.shape[0]))


@rule("tt.broadcast")
def broadcast(ev: Any, op: Op, x: Any) -> Any:
    return struct(x, lambda t: t.expand(t.shape[0], *op.type.shape))


@rule("tt.expand_dims")
def expand_dims(ev: Any, op: Op, x: Any) -> Any:
    axis = op.attrs["axis"]
    return struct(x, lambda t: t.unsqueeze(axis + 1))


@rule("tt.reshape")
def reshape(ev: Any, op: Op, x: Any) -> Any:
    return ev.reshape(x, op.type.shape)


@rule("tt.trans")
def trans(ev: Any, op: Op, x: Any) -> Any:
    order = [0, *(o + 1 for o in op.attrs["order"])]
    return struct(x, lambda t: t.permute(order))


@rule("tt.join")
def join(ev: Any, op: Op, a: Any, b: Any) -> Any:
    return struct_n(_alike(a, b), lambda ts: torch.stack(list(ts), -1))


@rule("tt.split")
def split(ev: Any, op: Op, x: Any) -> tuple[Any, Any]:
    return struct(x, lambda t: t[..., 0]), struct(x, lambda t: t[..., 1])


@rule("tt.cat")
def cat(ev: Any, op: Op, a: Any, b: Any) -> Any:
    return struct_n(_alike(a, b), lambda ts: torch.cat(list(ts), 1))


def _alike(a: Any, b: Any) -> tuple[Any, Any]:
    """Both with the same number of lanes."""
    n = max(lanes_of(a), lanes_of(b))
    return tuple(struct(v, lambda t: t.expand(n, *t.shape[1:])) for v in (a, b))  # type: ignore[return-value]


@rule("tt.gather")
def gather(ev: Any, op: Op, x: Any, index: Tensor) -> Any:
    axis = op.attrs["axis"] + 1
    size = x.shape[axis]
    bad = (index < 0) | (index >= size)
    if bool(bad.any()):
        first = int(index[bad][0])
        raise Unsupported(f"tl.gather with an index out of range ({first} of {size})", where=op.loc)
    n = max(lanes_of(x), lanes_of(index))
    wide = index.to(torch.int64).expand(n, *index.shape[1:])
    return struct(x, lambda t: torch.gather(t.expand(n, *t.shape[1:]), axis, wide))


@rule("tt.histogram")
def histogram(ev: Any, op: Op, x: Tensor, mask: Tensor | None = None) -> Tensor:
    bins = op.type.shape[0]
    lanes = lanes_of(x) if mask is None else max(lanes_of(x), lanes_of(mask))
    x = x.to(torch.int64).expand(lanes, *x.shape[1:])
    keep = (x >= 0) & (x < bins)
    if mask is not None:
        keep = keep & mask
    where = torch.where(keep, x, torch.zeros_like(x))
    return torch.zeros(lanes, bins, dtype=torch.int32).scatter_add_(1, where, keep.to(torch.int32))


@rule("tt.addptr")
def addptr(ev: Any, op: Op, ptr: Ptr, offset: Tensor) -> Ptr:
    return Ptr(ptr.buf, ptr.off + offset, ptr.elem)


@rule("tt.ptr_to_int")
def ptr_to_int(ev: Any, op: Op, ptr: Ptr) -> Tensor:
    return ev.address(ptr)


@rule("tt.int_to_ptr")
def int_to_ptr(ev: Any, op: Op, x: Tensor) -> Ptr:
    return ev.pointer(x, op.type.pointee, op.loc)


@rule("tt.get_program_id")
def get_program_id(ev: Any, op: Op) -> Tensor:
    return ev.program_id("xyz".index(op.attrs["words"][0]))


@rule("tt.get_num_programs")
def get_num_programs(ev: Any, op: Op) -> Tensor:
    return torch.tensor([ev.grid["xyz".index(op.attrs["words"][0])]], dtype=torch.int32)


@rule("ub.poison")
def undefined(ev: Any, op: Op) -> Any:
    return poison(ev.domain, op.type, (1, *op.type.shape), op.loc)


@rule("tt.assert")
def assert_(ev: Any, op: Op, condition: Tensor) -> None:
    failed = int((~condition.to(torch.bool)).sum())
    if failed:
        ev.memory.undefined_value("assertion", op.loc, failed, str(op.attrs.get("text", op.attrs.get("message", ""))))


@rule("tt.print", "llvm.intr.assume", "gpu.barrier", "ttg.barrier", "nvvm.barrier0", "ttg.local_barrier")
def nothing(ev: Any, op: Op, *args: Any) -> None:
    return None
