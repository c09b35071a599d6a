"""Atomics. Programs take part in the order of the launch: lane by lane, element by element.

Where several lanes meet on one address and the old value matters, they are served in rounds (one lane an address and
round), which is what the hardware does in some order. Adds whose result nobody uses go in one pass.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ...errors import Unsupported
from ..memory import Buffer, poison
from ..program import Op, Type
from ..values import FLOATS, Ptr, expand_lead, struct
from . import rule
from .arith import _extreme
from .memory import block_at, flatten


@rule("tt.atomic_rmw")
def atomic_rmw(ev: Any, op: Op, ptr: Ptr, value: Any, mask: Tensor | None = None) -> Any:
    return rmw(ev, op, op.attrs["words"][0], ptr, value, mask, ev.types[op.operands[1]], op.results)


def rmw(
    ev: Any, op: Op, kind: str, ptr: Ptr, value: Any, mask: Tensor | None, t: Type, results: tuple[int, ...]
) -> Any:
    """Read-modify-write of ``kind``; gives the old values where they are used."""
    n = ev.lanes.n
    ptr = struct(ptr, lambda x: expand_lead(x, n))
    if not isinstance(ptr.buf, int):
        raise Unsupported("an atomic on pointers into several buffers", where=op.loc)
    buffer = ev.memory.buffer(ptr.buf)
    if buffer.elem != t.elem:
        return _recast(ev, op, buffer, kind, ptr, value, mask, t, results)
    index, values, mine, off, keep = flatten(ev, buffer, ptr, value, mask, "atomic", t, op.loc)
    used = bool(results) and results[0] in ev.used
    if kind in ("add", "fadd") and not used:
        old = None
        _add(ev, buffer, index, values, t)
    else:
        old = _rounds(ev, buffer, index, t, lambda at, now: _combine(ev, op, kind, now, _pick(ev, values, at, t), t))
    _track(ev, buffer, index, mine, op.loc)
    return _scatter(ev, old, off, keep, t, op.loc) if used else poison(ev.domain, t, tuple(off.shape), op.loc)


def _recast(
    ev: Any,
    op: Op,
    buffer: Buffer,
    kind: str,
    ptr: Ptr,
    value: Any,
    mask: Tensor | None,
    t: Type,
    results: tuple[int, ...],
) -> Any:
    """Float max and min reach the IR as integer atomics on the float's bits: done on a view of the storage, or as what
    they mean in the real domain."""
    if ev.domain.name == "real" and buffer.elem in FLOATS and kind in _MEANT:
        elem = Type(buffer.elem, t.shape)
        old = rmw(ev, op, _MEANT[kind], ptr, ev.domain.from_bits(value, elem, op.loc), mask, elem, results)
        return ev.domain.to_bits(old, elem, op.loc)
    view = ev.memory.view(buffer, t.elem, op.loc)
    twin = Buffer(buffer.number, view, t.elem, buffer.size, buffer.names, buffer.tracked, buffer.uninitialised,
        buffer.origin,
        buffer.touched)  # fmt: skip
    ev.memory.buffers[buffer.number] = twin
    try:
        return rmw(ev, op, kind, ptr, value, mask, t, results)
    finally:
        ev.memory.buffers[buffer.number] = buffer


def _add(ev: Any, buffer: Buffer, index: Tensor, values: Any, t: Type) -> None:
    if t.is_float:
        buffer.storage = ev.domain.add_at(buffer.storage, index, values, t)
    else:
        buffer.storage.index_add_(0, index, values)


def _pick(ev: Any, values: Any, at: Tensor, t: Type) -> Any:
    return ev.domain.take(values, at) if t.is_float else values.index_select(0, at)


def _rounds(ev: Any, buffer: Buffer, index: Tensor, t: Type, update: Any) -> Any:
    """Old value of each entry while ``update(entries, now)`` is stored in turn. None if there are no entries."""
    if index.numel() == 0:
        return None
    order = torch.argsort(index, stable=True)
    where = index.index_select(0, order)
    first = torch.ones_like(where, dtype=torch.bool)
    first[1:] = where[1:] != where[:-1]
    starts = first.nonzero().reshape(-1)
    rank = torch.arange(len(where)) - starts[torch.cumsum(first.to(torch.int64), 0) - 1]
    pieces, places = [], []
    for r in range(int(rank.max()) + 1):
        at = order[rank == r]
        here = index.index_select(0, at)
        now = _pick(ev, buffer.storage, here, t)
        pieces.append(now)
        places.append(at)
        new = update(at, now)
        if t.is_float:
            buffer.storage = ev.domain.put(buffer.storage, here, new)
        else:
            buffer.storage[here] = new
    from .memory import concat_lanes, take_flat

    return take_flat(concat_lanes(pieces), torch.argsort(torch.cat(places)), t, ev)


_SIMPLE: dict[str, Any] = {
    "add": torch.add,
    "and": torch.bitwise_and,
    "or": torch.bitwise_or,
    "xor": torch.bitwise_xor,
    "max": torch.maximum,
    "min": torch.minimum,
}
_MEANT = {"max": "max", "umin": "max", "min": "min", "umax": "min"}
_FLOAT = {"fadd": "add", "add": "add", "max": "maxnum", "min": "minnum"}


def _combine(ev: Any, op: Op, kind: str, now: Any, value: Any, t: Type) -> Any:
    if kind in ("exch", "xchg"):
        return value
    if t.is_float:
        if kind not in _FLOAT:
            raise Unsupported(f"atomic {kind} on {t.elem}", where=op.loc)
        return ev.domain.apply(_FLOAT[kind], Type(t.elem), (now, value), op.loc)
    if kind in _SIMPLE:
        return _SIMPLE[kind](now, value)
    if kind in ("umax", "umin"):
        return _extreme(_like(op, t), now, value, False, kind == "umax")
    raise Unsupported(f"atomic {kind}", where=op.loc)


def _like(op: Op, t: Type) -> Op:
    return Op(op.name, (), (), (Type(t.elem),), {}, loc=op.loc)


def _track(ev: Any, buffer: Buffer, index: Tensor, mine: Tensor, where: str) -> None:
    if not buffer.tracked or index.numel() == 0:
        return
    memory = ev.memory
    memory.clash("atomic/write", where, buffer, "writer", index, mine)
    memory.clash("atomic/read", where, buffer, "reader", index, mine)
    memory.stamp(buffer.table("atomic"), index, mine)


def _scatter(ev: Any, old: Any, off: Tensor, keep: Tensor | None, t: Type, where: str) -> Any:
    """Old values in the shape of the operation; poison where masked off."""
    shape = tuple(off.shape)
    if old is None:
        return poison(ev.domain, t, shape, where)
    if keep is None:
        return struct(old, lambda x: x.reshape(shape))
    place = (torch.cumsum(keep.to(torch.int64), 0) - 1).clamp(min=0)
    from .memory import take_flat

    spread = struct(take_flat(old, place, t, ev), lambda x: x.reshape(shape))
    return ev.select(keep.reshape(shape), spread, poison(ev.domain, t, shape, where), t)


@rule("tt.atomic_cas")
def atomic_cas(ev: Any, op: Op, ptr: Ptr, expected: Any, value: Any) -> Any:
    n = ev.lanes.n
    ptr = struct(ptr, lambda x: expand_lead(x, n))
    t = op.type
    if not isinstance(ptr.buf, int):
        raise Unsupported("an atomic on pointers into several buffers", where=op.loc)
    buffer = ev.memory.buffer(ptr.buf)
    index, values, mine, off, keep = flatten(ev, buffer, ptr, value, None, "atomic", t, op.loc)
    wanted = struct(expected, lambda x: x.expand(off.shape).reshape(-1))
    if keep is not None:
        wanted = struct(wanted, lambda x: x[keep])

    def update(at: Tensor, now: Any) -> Any:
        hit = now == _pick(ev, wanted, at, t)
        return ev.select(hit, _pick(ev, values, at, t), now, Type(t.elem))

    if t.is_float and ev.domain.name != "machine":
        raise Unsupported(f"atomic compare-and-swap of floats in the {ev.domain.name} domain", where=op.loc)
    old = _rounds(ev, buffer, index, t, update)
    _track(ev, buffer, index, mine, op.loc)
    return _scatter(ev, old, off, keep, t, op.loc)


@rule("tt.atomic_load")
def atomic_load(ev: Any, op: Op, ptr: Ptr, mask: Tensor | None = None) -> Any:
    n = ev.lanes.n
    ptr = struct(ptr, lambda x: expand_lead(x, n))
    buffer = ev.memory.buffer(ptr.buf)
    index, _, mine, off, keep = flatten(ev, buffer, ptr, ptr.off, mask, "atomic", Type("i64"), op.loc)
    old = _pick(ev, buffer.storage, index, op.type)
    if buffer.tracked:
        ev.memory.clash("atomic/write", op.loc, buffer, "writer", index, mine)
    return _scatter(ev, old if index.numel() else None, off, keep, op.type, op.loc)


@rule("tt.atomic_store")
def atomic_store(ev: Any, op: Op, ptr: Ptr, value: Any, mask: Tensor | None = None) -> None:
    rmw(ev, op, "exch", ptr, value, mask, ev.types[op.operands[1]], ())


@rule("tt.descriptor_reduce")
def descriptor_reduce(ev: Any, op: Op, desc: Any, *rest: Any) -> None:
    value_at = next(i for i, o in enumerate(op.operands[1:]) if ev.types[o].shape)
    starts = tuple(r for i, r in enumerate(rest) if i != value_at)
    t = ev.types[op.operands[1 + value_at]]
    ptr, mask = block_at(ev, desc, starts, t.shape)
    words = op.attrs.get("words", ())
    kind = str(op.attrs.get("kind", words[0] if words else ""))
    rmw(ev, op, {"inc": "add", "dec": "sub"}.get(kind, kind), ptr, rest[value_at], mask, t, ())
