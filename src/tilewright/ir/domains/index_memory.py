"""Memory in the index domain: accesses are kept with their conditions; what integer loads give is unknown, within what
the contract promises of the input that they read."""

from __future__ import annotations

from typing import Any

from ..program import Op, Type
from . import index
from .index import AX, OPAQUE, Flag, Num, Spot, add, choose, compare, conj, mul, num
from .index_rules import Rule

RULES: dict[str, Rule] = {}


def rule(*names: str) -> Any:
    def register(fn: Rule) -> Rule:
        RULES.update(dict.fromkeys(names, fn))
        return fn

    return register


@rule("tt.load")
def load(w: Any, op: Op, ptr: Any, mask: Any = None, other: Any = None) -> Any:
    w.touch("load", op, ptr, mask, op.type)
    return loaded(w, op, ptr, mask, other)


def loaded(w: Any, op: Op, ptr: Any, mask: Any, other: Any) -> Any:
    """What a load gives: nothing is kept of floats."""
    if op.type.is_float:
        return OPAQUE
    held = w.launch.storages[ptr.buf].promised if isinstance(ptr, Spot) and ptr.buf is not None else None
    held = held if op.type.elem not in ("i1", "ptr") else None
    value = w.unknown(op.type, op.loc, *(held or ()))
    if held:
        w.unknowns.promised.add(value.e.decl().name())
    if mask is None or (isinstance(mask, Flag) and mask.e is True):
        return value
    if not isinstance(mask, Flag):
        return w.unknown(op.type, op.loc)
    return choose(mask.e, value, w.unknown(op.type, op.loc) if other is None else other)


@rule("tt.store")
def store(w: Any, op: Op, ptr: Any, value: Any, mask: Any = None) -> None:
    w.touch("store", op, ptr, mask, w.types[op.operands[1]])


@rule("tt.atomic_rmw")
def atomic_rmw(w: Any, op: Op, ptr: Any, value: Any, mask: Any = None) -> Any:
    w.touch("atomic", op, ptr, mask, w.types[op.operands[1]])
    return w.unknown(op.type, op.loc) if op.results else None


@rule("tt.atomic_cas")
def atomic_cas(w: Any, op: Op, ptr: Any, expected: Any, value: Any) -> Any:
    w.touch("atomic", op, ptr, None, w.types[op.operands[2]])
    return w.unknown(op.type, op.loc) if op.results else None


class Box:
    """A tensor descriptor: base, sizes and strides."""

    def __init__(self, base: Spot, sizes: list[Num], strides: list[Num]):
        self.base, self.sizes, self.strides = base, sizes, strides

    def at(self, starts: list[Any], shape: tuple[int, ...]) -> tuple[Any, Any]:
        """Address and mask of a block of this shape (the last axes of the descriptor's rank)."""
        off, inside = self.base.off, []
        spare = len(self.sizes) - len(shape)
        for d, start in enumerate(starts):
            if not isinstance(start, Num):
                return None, None
            lane = index.made(AX[d - spare], 0, shape[d - spare] - 1) if d >= spare else num(0)
            at = add(start, lane)
            inside += [compare("ge", at, num(0)), compare("lt", at, self.sizes[d])]
            off = add(off, mul(at, self.strides[d]))
        return Spot(self.base.buf, off, self.base.elem), Flag(conj(*inside))


@rule("tt.make_tensor_descriptor")
def make_tensor_descriptor(w: Any, op: Op, base: Any, *rest: Any) -> Any:
    rank = len(op.type.block)
    if not isinstance(base, Spot) or not all(isinstance(r, Num) for r in rest[: 2 * rank]):
        return OPAQUE
    return Box(base, list(rest[:rank]), list(rest[rank : 2 * rank]))


@rule("tt.descriptor_load")
def descriptor_load(w: Any, op: Op, desc: Any, *starts: Any) -> Any:
    ptr, mask = desc.at(list(starts), op.type.shape) if isinstance(desc, Box) else (None, None)
    w.touch("load", op, ptr, mask, op.type)
    return loaded(w, op, ptr, mask, None)


@rule("tt.descriptor_store")
def descriptor_store(w: Any, op: Op, desc: Any, *rest: Any) -> None:
    at = next(i for i, o in enumerate(op.operands[1:]) if w.types[o].shape)
    t: Type = w.types[op.operands[1 + at]]
    starts = [r for i, r in enumerate(rest) if i != at]
    ptr, mask = desc.at(starts, t.shape) if isinstance(desc, Box) else (None, None)
    w.touch("store", op, ptr, mask, t)
