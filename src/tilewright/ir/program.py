"""Program: a kernel's IR as plain data. Immutable, with the source line of every operation and a content hash."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

FLOATS = frozenset({"f16", "bf16", "f32", "f64", "f8E4M3FN", "f8E5M2", "f8E4M3FNUZ", "f8E5M2FNUZ", "f8E4M3B11FNUZ"})


@dataclass(frozen=True, slots=True)
class Type:
    """Type of a value: ``shape`` in elements (``()`` for a scalar), ``elem`` in MLIR's spelling (``f32``, ``i1``), or
    ``ptr`` / ``desc`` with the type they lead to in ``pointee`` (and the descriptor's block in ``block``)."""

    elem: str
    shape: tuple[int, ...] = ()
    pointee: str = ""
    block: tuple[int, ...] = ()

    @property
    def is_float(self) -> bool:
        return self.elem in FLOATS

    @property
    def numel(self) -> int:
        n = 1
        for s in self.shape:
            n *= s
        return n

    def __str__(self) -> str:
        elem = f"ptr<{self.pointee}>" if self.elem == "ptr" else self.elem
        return "x".join([*map(str, self.shape), elem])


@dataclass(frozen=True, slots=True, eq=False)
class Op:
    """One operation. ``operands`` and ``results`` are value ids; ``loc`` is the user's ``file:line``, ``frames`` the
    whole inlining chain, innermost first; ``line`` the line of the IR text."""

    name: str
    operands: tuple[int, ...]
    results: tuple[int, ...]
    types: tuple[Type, ...]
    attrs: dict[str, Any]
    regions: tuple[Region, ...] = ()
    loc: str = ""
    frames: tuple[str, ...] = ()
    line: int = 0
    successors: tuple[tuple[str, tuple[int, ...]], ...] = ()

    @property
    def type(self) -> Type:
        """Type of the only (or first) result."""
        return self.types[0]


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """``label`` is the IR's (``^bb1``), ``args`` the ids of the block's arguments."""

    label: str
    args: tuple[int, ...]
    arg_types: tuple[Type, ...]
    ops: tuple[Op, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Region:
    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Function:
    """``arg_names`` are those of the source where the IR has them."""

    name: str
    arg_names: tuple[str, ...]
    args: tuple[int, ...]
    arg_types: tuple[Type, ...]
    body: Region
    public: bool
    arg_attrs: tuple[dict[str, Any], ...] = ()


@dataclass(frozen=True, eq=False)
class Program:
    """``entry`` is the kernel; ``functions`` holds it and what it calls. ``sha256`` is that of the IR without
    locations: the same computation has the same hash wherever its file lies."""

    entry: Function
    functions: dict[str, Function]
    types: tuple[Type, ...]
    sha256: str
    text: str = field(repr=False, default="")

    def ops(self) -> Iterator[Op]:
        """All operations, nested ones after their parent."""
        for f in self.functions.values():
            yield from walk(f.body)

    @cached_property
    def largest_tile(self) -> int:
        """Elements of the largest tensor value."""
        return max((t.numel for t in self.types), default=1)

    @cached_property
    def written_args(self) -> frozenset[int] | None:
        """Positions of the pointer arguments that a store or an atomic may reach; None when that can't be told."""
        return _written(self)


def walk(region: Region) -> Iterator[Op]:
    """Operations of a region, nested ones after their parent."""
    for block in region.blocks:
        for op in block.ops:
            yield op
            for inner in op.regions:
                yield from walk(inner)


_WRITES = {"tt.store": 0, "tt.atomic_rmw": 0, "tt.atomic_cas": 0, "tt.descriptor_store": 0, "tt.descriptor_reduce": 0,
           "tt.descriptor_scatter": 0, "tt.atomic_store": 0}  # fmt: skip


def _written(program: Program) -> frozenset[int] | None:
    """Forward taint from each pointer argument to the addresses of stores, to a fixpoint over loops and calls."""
    roots: dict[int, set[int]] = {a: {i} for i, a in enumerate(program.entry.args)}
    sinks: set[int] = set()
    carries = {i for i, t in enumerate(program.types) if t.elem in ("ptr", "desc", "i64")}
    changed = True
    while changed:
        changed = False
        for op, source, target in _flows(program):
            known = roots.get(source)
            if not known or (target not in carries and target >= 0):
                continue
            if target < 0:
                if op.name == "tt.int_to_ptr":
                    return None
                sinks |= known
            elif not known <= roots.setdefault(target, set()):
                roots[target] |= known
                changed = True
    if any(op.name == "tt.int_to_ptr" for op in program.ops()):
        return None
    return frozenset(s for s in sinks if program.entry.arg_types[s].elem in ("ptr", "desc"))


def _flows(program: Program) -> Iterator[tuple[Op, int, int]]:
    """Edges value → value that may carry a pointer; a target of -1 is an address that is written."""
    for f in program.functions.values():
        for op in walk(f.body):
            if op.name in _WRITES:
                yield op, op.operands[_WRITES[op.name]], -1
                continue
            inner = [b for r in op.regions for b in r.blocks]
            targets = list(op.results) + [a for b in inner for a in b.args]
            if op.name == "tt.call":
                callee = program.functions[op.attrs["callee"]]
                yield from ((op, s, t) for s, t in zip(op.operands, callee.args, strict=True))
                ends = [o for o in walk(callee.body) if o.name == "tt.return"]
                yield from ((op, s, t) for e in ends for s, t in zip(e.operands, op.results, strict=False))
                continue
            sources = list(op.operands) + [s for b in inner if b.ops for s in b.ops[-1].operands]
            if op.name != "tt.load":
                yield from ((op, s, t) for s in sources for t in targets)
            for label, values in op.successors:
                block = next(b for b in f.body.blocks if b.label == label)
                yield from ((op, s, t) for s, t in zip(values, block.args, strict=True))
