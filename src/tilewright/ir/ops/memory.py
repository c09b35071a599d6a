"""Loads and stores, plain and through tensor descriptors. Bounds and tracking are memory.py's."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ..memory import Buffer, masked_off, poison
from ..program import Op, Type
from ..values import Desc, Ptr, expand_lead, lanes_of, struct, struct_n
from . import rule


@rule("tt.load")
def load(ev: Any, op: Op, ptr: Ptr, mask: Tensor | None = None, other: Any = None) -> Any:
    return load_at(ev, ptr, mask, other, op.type, op.loc)


def load_at(ev: Any, ptr: Ptr, mask: Tensor | None, other: Any, t: Type, where: str) -> Any:
    """Elements at ``ptr``; where masked off ``other``; if there is none, what the domain leaves there."""
    parts = ev.memory.parts(ptr, mask)
    if len(parts) == 1:
        return _load(ev, parts[0][0], parts[0][1], parts[0][2], other, t, where)
    out = other
    for buffer, here, active in parts:
        out = _load(ev, buffer, here, active, out, t, where)
    if out is None:
        out = masked_off(ev.domain, t, tuple(ptr.shape), where)
    return out


def _load(ev: Any, buffer: Buffer, ptr: Ptr, mask: Tensor | None, other: Any, t: Type, where: str) -> Any:
    memory = ev.memory
    off = ptr.off
    if mask is not None:
        off, mask = _common(ptr.off, mask)
        if bool(mask.all()):
            mask = None
    if buffer.tracked and lanes_of(off) < ev.lanes.n:
        off = expand_lead(off, ev.lanes.n)
        mask = None if mask is None else expand_lead(mask, ev.lanes.n)
    index = off.reshape(-1)
    active = None if mask is None else mask.reshape(-1)
    memory.note("load", where, buffer, t.elem, index.numel(), index.numel() if active is None else int(active.sum()))
    storage = memory.view(buffer, t.elem, where)
    good = _check(ev, "load", buffer, int(storage.shape[0]), off, index, active, where)
    keep = active if good is None else good if active is None else active & good
    if buffer.tracked:
        mine = ev.mine(off)
        memory.saw_read(buffer, index if keep is None else index[keep], mine if keep is None else mine[keep], where)
    shape = tuple(off.shape)
    if storage.shape[0] == 0:
        loaded = poison(ev.domain, t, shape, where)
    else:
        safe = index if keep is None else torch.where(keep, index, torch.zeros_like(index))
        loaded = struct(_take(ev, storage, safe, t), lambda x: x.reshape(shape))
    if t.elem == "i1" and isinstance(loaded, Tensor):
        loaded = loaded.to(torch.bool)
    if good is not None:
        loaded = ev.select(good.reshape(shape), loaded, poison(ev.domain, t, (1,) * len(shape), where), t)
    if mask is None:
        return loaded
    if other is None:
        memory.undefined_value("masked load", where, int((~mask).sum()))
        other = masked_off(ev.domain, t, shape, where)
    return ev.select(mask, loaded, other, t)


def _take(ev: Any, storage: Any, index: Tensor, t: Type) -> Any:
    return ev.domain.take(storage, index) if t.is_float else storage.index_select(0, index)


def _common(off: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """Both in one shape: a scalar mask or a mask with fewer lanes is expanded."""
    if mask.dim() < off.dim():
        mask = mask.reshape(mask.shape + (1,) * (off.dim() - mask.dim()))
    off, mask = torch.broadcast_tensors(off, mask)
    return off, mask


def _check(
    ev: Any, kind: str, buffer: Buffer, size: int, off: Tensor, index: Tensor, active: Tensor | None, where: str
) -> Tensor | None:
    """None if every active index is below ``size``, else which indices are no fault (in range or masked off)."""
    if index.numel() == 0:
        return None
    probe = index
    if active is not None:
        one = int(active.view(torch.uint8).argmax())
        if not bool(active[one]):
            return None
        probe = torch.where(active, index, index[one])
    low, high = (int(t) for t in torch.aminmax(probe))
    ev.memory.span(kind, where, buffer, low, high)
    if low >= 0 and high < size:
        return None
    bad = (index < 0) | (index >= size)
    if active is not None:
        bad &= active
    programs = (ev.mine(off) - 1) if lanes_of(off) == ev.lanes.n else ev.lanes.ids[:1].expand(len(index))
    first = int(bad.nonzero()[0])
    at, program = int(index[first]), int(programs[first])
    ev.memory.fault(kind, where, buffer, at, size, program, int(bad.sum()), active is not None)
    return ~bad


@rule("tt.store")
def store(ev: Any, op: Op, ptr: Ptr, value: Any, mask: Tensor | None = None) -> None:
    store_at(ev, ptr, value, mask, ev.types[op.operands[1]], op.loc)


def store_at(ev: Any, ptr: Ptr, value: Any, mask: Tensor | None, t: Type, where: str) -> None:
    """Stores ``value`` where not masked off; out of range is recorded and dropped."""
    n = ev.lanes.n
    ptr = struct(ptr, lambda x: expand_lead(x, n))
    for buffer, here, active in ev.memory.parts(ptr, mask):
        _store(ev, buffer, here, value, active, t, where)


def _store(ev: Any, buffer: Buffer, ptr: Ptr, value: Any, mask: Tensor | None, t: Type, where: str) -> None:
    memory = ev.memory
    index, values, mine, *_ = flatten(ev, buffer, ptr, value, mask, "store", t, where)
    if index.numel() == 0:
        return
    storage = memory.view(buffer, t.elem, where)
    if t.elem == "i1":
        values = values.to(torch.int8)

    def same(chosen: Tensor) -> bool:
        now = _take(ev, storage, index[chosen], t)
        then = take_flat(values, chosen.nonzero().reshape(-1), t, ev)
        return bool((ev.domain.equal(now, then) if t.is_float else now == then).all())

    if buffer.tracked:
        memory.before_write(buffer, index, mine, where, same)
    if t.is_float:
        storage = ev.domain.put(storage, index, values)
        if buffer.elem == t.elem:
            buffer.storage = storage
    else:
        storage[index] = values
    if buffer.tracked:
        memory.after_write(buffer, index, mine, where, same)


def flatten(
    ev: Any, buffer: Buffer, ptr: Ptr, value: Any, mask: Tensor | None, kind: str, t: Type, where: str
) -> tuple[Any, ...]:
    """Active, in-range indices with their values and programs: all one-dimensional and of one length, with the
    full offsets and which of them were kept (None: all)."""
    n = ev.lanes.n
    off = ptr.off
    if mask is not None:
        off, mask = _common(off, expand_lead(mask, n))
    index = off.reshape(-1)
    active = None if mask is None or bool(mask.all()) else mask.reshape(-1)
    ev.memory.note(kind, where, buffer, t.elem, index.numel(), index.numel() if active is None else int(active.sum()))
    size = int(ev.memory.view(buffer, t.elem, where).shape[0])
    good = _check(ev, kind, buffer, size, off, index, active, where)
    keep = active if good is None else good if active is None else active & good
    shape = tuple(off.shape)
    values = struct(value, lambda x: x.expand(shape).reshape(-1))
    mine = ev.mine(off)
    if keep is not None:
        chosen = keep.nonzero().reshape(-1)
        index, mine = index.index_select(0, chosen), mine.index_select(0, chosen)
        values = take_flat(values, chosen, t, ev)
    return index, values, mine, off, keep


def take_flat(values: Any, chosen: Tensor, t: Type, ev: Any) -> Any:
    """Chosen entries of a one-dimensional value."""
    if t.is_float and isinstance(values, Tensor):
        return ev.domain.take(values, chosen)
    return struct(values, lambda x: x.index_select(0, chosen))


# -- tensor descriptors


@rule("tt.make_tensor_descriptor")
def make_tensor_descriptor(ev: Any, op: Op, base: Ptr, *rest: Tensor) -> Desc:
    rank = len(op.type.block)
    padding = "nan" if "nan" in str(op.attrs.get("padding", "")).lower() or op.attrs.get("padding") == 2 else "zero"
    return Desc(base, tuple(s.to(torch.int64) for s in rest[:rank]), tuple(s.to(torch.int64) for s in rest[rank:]),
                op.type.block, padding)  # fmt: skip


def block_at(ev: Any, desc: Desc, starts: tuple[Tensor, ...], shape: tuple[int, ...]) -> tuple[Ptr, Tensor]:
    """Addresses and in-range mask of a descriptor's block at ``starts``, in the block's own rank."""
    rank = len(desc.block)
    off: Tensor | None = None
    mask: Tensor | None = None
    for d in range(rank):
        ones = [1] * rank
        ones[d] = desc.block[d]
        at = starts[d].to(torch.int64).reshape(-1, *([1] * rank)) + torch.arange(desc.block[d]).reshape(1, *ones)
        inside = (at >= 0) & (at < desc.sizes[d].reshape(-1, *([1] * rank)))
        step = at * desc.strides[d].reshape(-1, *([1] * rank))
        off = step if off is None else off + step
        mask = inside if mask is None else mask & inside
    assert off is not None
    assert mask is not None
    base = struct(desc.base, lambda x: x.reshape(-1, *([1] * rank)))
    off, mask = torch.broadcast_tensors(base.off + off, mask)
    buf = base.buf if isinstance(base.buf, int) else base.buf.expand_as(off)
    lead = off.shape[0]
    return Ptr(buf, off.reshape(lead, *shape), base.elem), mask.reshape(lead, *shape)


def _padding(ev: Any, desc: Desc, t: Type, where: str) -> Any:
    value = float("nan") if desc.padding == "nan" else 0.0
    zero = ev.domain.constant(value, Type(t.elem), where) if t.is_float else torch.zeros(1, dtype=ev.int_dtype(t.elem))
    return ev.splat(zero, t.shape)


@rule("tt.descriptor_load")
def descriptor_load(ev: Any, op: Op, desc: Desc, *starts: Tensor) -> Any:
    ptr, mask = block_at(ev, desc, starts, op.type.shape)
    return load_at(ev, ptr, mask, _padding(ev, desc, op.type, op.loc), op.type, op.loc)


@rule("tt.descriptor_store")
def descriptor_store(ev: Any, op: Op, desc: Desc, *rest: Any) -> None:
    value_at = next(i for i, o in enumerate(op.operands[1:]) if ev.types[o].shape)
    starts = tuple(r for i, r in enumerate(rest) if i != value_at)
    t = ev.types[op.operands[1 + value_at]]
    ptr, mask = block_at(ev, desc, starts, t.shape)
    store_at(ev, ptr, rest[value_at], mask, t, op.loc)


def _rows(ev: Any, desc: Desc, x: Tensor, y: Tensor, shape: tuple[int, ...]) -> tuple[Ptr, Tensor]:
    """Addresses of rows ``x`` (one index a row) of a two-dimensional descriptor, columns from ``y``."""
    rows = x.to(torch.int64).unsqueeze(2)
    cols = y.to(torch.int64).reshape(-1, 1, 1) + torch.arange(shape[1]).reshape(1, 1, -1)
    size = [s.reshape(-1, 1, 1) for s in desc.sizes]
    step = [s.reshape(-1, 1, 1) for s in desc.strides]
    inside = (rows >= 0) & (rows < size[0]) & (cols >= 0) & (cols < size[1])
    base = struct(desc.base, lambda t: t.reshape(-1, 1, 1))
    off, mask = torch.broadcast_tensors(base.off + rows * step[0] + cols * step[1], inside)
    return Ptr(base.buf if isinstance(base.buf, int) else base.buf.expand_as(off), off, base.elem), mask


@rule("tt.descriptor_gather")
def descriptor_gather(ev: Any, op: Op, desc: Desc, x: Tensor, y: Tensor) -> Any:
    ptr, mask = _rows(ev, desc, x, y, op.type.shape)
    return load_at(ev, ptr, mask, _padding(ev, desc, op.type, op.loc), op.type, op.loc)


@rule("tt.descriptor_scatter")
def descriptor_scatter(ev: Any, op: Op, desc: Desc, x: Tensor, y: Tensor, value: Any) -> None:
    t = ev.types[op.operands[3]]
    ptr, mask = _rows(ev, desc, x, y, t.shape)
    store_at(ev, ptr, value, mask, t, op.loc)


def concat_lanes(values: list[Any]) -> Any:
    """Values joined along the lanes."""
    return struct_n(values, lambda ts: torch.cat(list(ts)))
