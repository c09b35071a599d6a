"""Walks a Program once in the index domain and keeps every access with the conditions under which it happens.

A branch is walked both ways, a loop for its k-th turn (``index_loops.py``). So one walk stands for every turn of every
program at every size.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import z3

from ..program import Block, Function, Op, Program, Region, Type
from ..values import bits
from . import index, index_memory
from .index import AX, OPAQUE, PID, Flag, Num, Spot, Unknowns, choose, conj, disj, inverse, num
from .index_loops import Beyond, Loops, limits
from .index_rules import RULES

PURE = ("arith.", "math.", "ub.", "tt.dot", "tt.fp_to_fp", "tt.clampf", "tt.precise", "tt.mulhiui", "tt.cat", "tt.gather",
        "tt.histogram", "tt.extern_elementwise", "tt.scan", "tt.reduce", "tt.map_elementwise", "tt.ptr_to_int",
        "tt.int_to_ptr")  # fmt: skip
ENDS = ("scf.yield", "scf.condition", "tt.return", "tt.reduce.return", "ub.unreachable", "llvm.unreachable")
FIT_MS = 150


@dataclass(frozen=True)
class Storage:
    """A storage of the launch: ``nbytes`` of it, the launch's ``names`` for it, and the integers that an input promises
    to hold (both ends included)."""

    nbytes: Num
    names: tuple[str, ...]
    promised: tuple[Num, Num] | None = None
    input: bool = False


@dataclass(frozen=True)
class SymbolicLaunch:
    """A launch at symbolic sizes: ``args`` are the entry's (Num, Spot, OPAQUE), ``grid`` three Nums, ``base`` what holds
    of the sizes."""

    program: Program
    args: tuple[Any, ...]
    grid: tuple[Num, Num, Num]
    storages: tuple[Storage, ...]
    base: tuple[Any, ...]
    known: dict[str, tuple[int, int]] = field(default_factory=dict)  # range of each size by name


@dataclass(frozen=True)
class Touch:
    """One load, store or atomic: offset in elements of ``elem``, a condition (mask and path), the tile's shape, and the
    counters of the loops around it."""

    kind: str
    where: str
    buf: int | None
    off: Num
    elem: str
    when: Any
    shape: tuple[int, ...]
    counters: tuple[Any, ...]


@dataclass
class Walker(Loops):
    """One walk of a launch. ``touches``: what it found."""

    launch: SymbolicLaunch
    touches: list[Touch] = field(default_factory=list)
    unknowns: Unknowns = field(default_factory=Unknowns)
    path: list[Any] = field(default_factory=list)
    counters: list[Any] = field(default_factory=list)
    quiet: int = 0  # no access is kept
    ideal: int = 0  # integers don't wrap
    loops: int = 0
    solver: Any = None
    answers: dict[Any, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.types: tuple[Type, ...] = self.launch.program.types
        self.solver = z3.Solver()
        self.solver.set("timeout", FIT_MS)
        self.solver.add(*self.launch.base, *within_grid(self.launch.grid))

    def run(self) -> list[Touch]:
        """All accesses of the launch. Raises Beyond where one can't be followed."""
        f = self.launch.program.entry
        self.function(f, list(self.launch.args))
        return self.touches

    # -- services for rules
    def unknown(self, t: Type, where: str, low: Num | None = None, high: Num | None = None) -> Any:
        """A value of which only the type (or a range) is known, that may differ at every place and turn."""
        at = (*AX[: len(t.shape)], *PID, *self.counters)
        if t.elem == "i1":
            return self.unknowns.flag(where, at)
        if t.elem == "ptr":
            return Spot(None, num(0), t.pointee)
        if t.is_float or t.elem == "desc":
            return OPAQUE
        ends = limits(t.elem)
        return self.unknowns.integer(low or num(ends[0]), high or num(ends[1]), where, at)

    def fit(self, x: Num, t: Type) -> Num:
        """What an integer of this type holds after a result ``x``: itself where it fits, else what is left of it."""
        low, high = limits(t.elem)
        if (x.low >= low and x.high <= high) or self.ideal:
            return x
        clipped = Num(x.e, max(x.low, low), min(x.high, high))
        if clipped.low <= clipped.high and self.never(disj(x.e < low, x.e > high), t.shape, x.e):
            return clipped
        wrapped = (index.whole(x.e) - low) % (1 << bits(t.elem)) + low
        return Num(z3.If(z3.And(x.e >= low, x.e <= high), index.whole(x.e), wrapped), low, high)

    def from_zero(self, x: Num, shape: tuple[int, ...], least: int = 0) -> Num:
        """``x`` with the range that it has if it is shown to be at least so much."""
        if x.low >= least or x.high < least or not self.never(x.e < least, shape, x.e):
            return x
        return Num(x.e, least, x.high)

    def never(self, condition: Any, shape: tuple[int, ...], *about: Any) -> bool:
        """Whether a condition holds nowhere on the present path."""
        if condition is False:
            return True
        asked = (index.truth(condition), *map(index.truth, self.path), *in_tile(shape))
        key = tuple(e.get_id() for e in asked)
        if key not in self.answers:
            self.solver.push()
            self.solver.add(*asked, *self.unknowns.facts(*about, *self.path))
            self.answers[key] = (bool(self.solver.check() == z3.unsat), asked)  # kept alive, so that ids stay theirs
            self.solver.pop()
        return self.answers[key][0]

    def touch(self, kind: str, op: Op, ptr: Any, mask: Any, t: Type) -> None:
        """Keeps an access. ``mask`` is None, a Flag or unknown."""
        if self.quiet:
            return
        if not isinstance(ptr, Spot):
            raise Beyond(f"an address that isn't followed, at {op.loc}")
        when = conj(*self.path, True if mask is None else mask.e if isinstance(mask, Flag) else self.any_mask(op, t))
        if when is not False:
            self.touches.append(Touch(kind, op.loc, ptr.buf, ptr.off, ptr.elem, when, t.shape, tuple(self.counters)))

    def any_mask(self, op: Op, t: Type) -> Any:
        return self.unknowns.flag(op.loc, (*AX[: len(t.shape)], *PID, *self.counters)).e

    # -- running
    def function(self, f: Function, args: list[Any]) -> list[Any]:
        values = dict(zip(f.args, args, strict=True))
        if len(f.body.blocks) == 1:
            return self.block(f.body.blocks[0], [], values)
        return self.graph(f, values)

    def block(self, block: Block, args: list[Any], values: dict[int, Any]) -> list[Any]:
        values.update(zip(block.args, args, strict=True))
        for op in block.ops:
            if op.name in ENDS:
                return [values[o] for o in op.operands]
            if op.name in ("cf.br", "cf.cond_br"):
                return []
            out = self.step(op, values)
            if len(op.results) == 1:
                values[op.results[0]] = out
            elif op.results:
                values.update(zip(op.results, out, strict=True))
        return []

    def step(self, op: Op, values: dict[int, Any]) -> Any:
        """One operation's result."""
        if op.name == "tt.call":
            out = self.function(self.launch.program.functions[op.attrs["callee"]], [values[o] for o in op.operands])
            return out if len(op.results) != 1 else out[0]
        if op.name in CONTROL:
            out = getattr(self, CONTROL[op.name])(op, values)
            return out if len(op.results) != 1 else out[0]
        operands = [values[o] for o in op.operands]
        if (memory := index_memory.RULES.get(op.name)) is not None:
            return memory(self, op, *operands)
        found = RULES[op.name](self, op, *operands) if op.name in RULES else None
        if found is not None or not op.results:
            if op.name not in RULES:
                raise Beyond(f"{op.name} at {op.loc}")
            return found
        if op.name not in RULES and not op.name.startswith(PURE):
            raise Beyond(f"{op.name} at {op.loc}")
        unknown = tuple(self.unknown(t, op.loc) for t in op.types)
        return unknown[0] if len(unknown) == 1 else unknown

    # -- control flow
    def branch(self, op: Op, values: dict[int, Any]) -> list[Any]:
        condition = values[op.operands[0]]
        condition = condition.e if isinstance(condition, Flag) else self.any_mask(op, Type("i1"))
        sides = []
        for region, holds in zip(op.regions, (condition, inverse(condition)), strict=False):
            sides.append(None if holds is False else self.under(holds, region, dict(values)))
        if len(sides) < 2 or not op.results:
            return []
        if sides[0] is None or sides[1] is None:
            return sides[0] or sides[1] or []
        return [choose(condition, a, b) for a, b in zip(sides[0], sides[1], strict=True)]

    def under(self, condition: Any, region: Region, values: dict[int, Any], args: list[Any] | None = None) -> list[Any]:
        """A region's results on the path where a condition holds."""
        self.path.append(condition)
        try:
            return self.block(region.blocks[0], args or [], values)
        finally:
            self.path.pop()

    def graph(self, f: Function, values: dict[int, Any]) -> list[Any]:
        """Blocks in topological order, each under the conditions that lead to it."""
        incoming: dict[str, list[tuple[Any, list[Any]]]] = {f.body.blocks[0].label: [(True, [])]}
        results: list[tuple[Any, list[Any]]] = []
        for block in ordered(f):
            ways = incoming.get(block.label, [])
            if not ways:
                continue
            when = disj(*(c for c, _ in ways))
            args = ways[-1][1]
            for condition, given in reversed(ways[:-1]):
                args = [choose(condition, a, b) for a, b in zip(given, args, strict=True)]
            self.path.append(when)
            out = self.block(block, args, values)
            self.path.pop()
            end = block.ops[-1]
            if not end.successors:
                results.append((when, out))
                continue
            for (label, passed), holds in zip(end.successors, self.ways(end, values), strict=True):
                incoming.setdefault(label, []).append((conj(when, holds), [values[v] for v in passed]))
        out = results[-1][1] if results else []
        for condition, given in reversed(results[:-1]):
            out = [choose(condition, a, b) for a, b in zip(given, out, strict=True)]
        return out

    def ways(self, end: Op, values: dict[int, Any]) -> list[Any]:
        if end.name == "cf.br":
            return [True]
        condition = values[end.operands[0]]
        condition = condition.e if isinstance(condition, Flag) else self.any_mask(end, Type("i1"))
        return [condition, inverse(condition)]


CONTROL = {"scf.for": "loop", "scf.while": "until", "scf.if": "branch"}


def ordered(f: Function) -> list[Block]:
    """Reverse postorder. Raises Beyond for a loop."""
    blocks = {b.label: b for b in f.body.blocks}
    out: list[Block] = []
    state: dict[str, int] = {}

    def visit(label: str) -> None:
        state[label] = 1
        for target, _ in blocks[label].ops[-1].successors:
            if state.get(target) == 1:
                raise Beyond("a loop in unstructured control flow")
            if target not in state:
                visit(target)
        state[label] = 2
        out.append(blocks[label])

    visit(f.body.blocks[0].label)
    return out[::-1]


def in_tile(shape: tuple[int, ...]) -> list[Any]:
    return [c for d, n in enumerate(shape) for c in (AX[d] >= 0, AX[d] < n)]


def within_grid(grid: tuple[Num, ...]) -> list[Any]:
    return [c for d, n in enumerate(grid) for c in (PID[d] >= 0, PID[d] < n.e)]
