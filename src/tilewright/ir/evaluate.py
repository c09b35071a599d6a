"""The evaluator: walks a Program once for all programs of a grid, over concrete integers.

Lanes. Each program of the grid is a lane; a value is a tensor of lanes × tile, with one lane where all agree. Where
programs part ways (a branch on their data, loops of different length, an early return), each part runs on the lanes
that take it, compacted, and the results are merged: no value is ever computed under a mask, so a divergent kernel
costs what its lanes cost and an inactive lane can't fault. A Frame holds the values defined for one set of lanes; a
value from an enclosing frame is narrowed to the frame's lanes when first asked for.
"""

from __future__ import annotations

import time
from typing import Any

import torch
from torch import Tensor

from ..errors import Unsupported
from .domains.base import Domain
from .frames import Frame, Lanes
from .memory import FIRST, SPACING, Memory
from .ops import load as load_rules
from .program import Block, Function, Op, Program, Region, Type
from .values import Ptr, expand_lead, int_dtype, merge, nbytes, struct

MAX_ITERATIONS = 1 << 20


class Evaluator:
    """Evaluates the programs ``ids`` of a launch. Rules see: ``domain``, ``memory``, ``grid``, ``types``, ``lanes``,
    ``constants`` (a cache by operation), ``fixed`` (ids of constants), ``used`` (of values that are read)."""

    def __init__(self, program: Program, domain: Domain, memory: Memory, grid: tuple[int, int, int],
                 seconds: float | None = None):  # fmt: skip
        self.deadline = None if seconds is None else time.monotonic() + seconds
        self.program = program
        self.domain = domain
        self.memory = memory
        self.grid = grid
        self.types = program.types
        self.rules = load_rules()
        self.constants: dict[int, Any] = {}
        self.fixed = {r for op in program.ops() if op.name == "arith.constant" for r in op.results}
        self.used = {o for op in program.ops() for o in op.operands} | {
            v for op in program.ops() for _, vs in op.successors for v in vs
        }
        self.frame: Frame
        self.mines: dict[tuple[int, ...], tuple[Lanes, Tensor]] = {}

    @property
    def lanes(self) -> Lanes:
        return self.frame.lanes

    def run(self, ids: Tensor, args: list[Any]) -> None:
        """Evaluates programs ``ids`` (ascending positions in launch order) of the entry function."""
        self.frame = Frame(None, Lanes(ids, len(ids)))
        self.mines.clear()
        self.function(self.program.entry, args)

    # -- services for rules
    def program_id(self, axis: int) -> Tensor:
        x, y, _ = self.grid
        ids = self.lanes.ids
        if axis == 0:
            out = ids % x
        else:
            out = ids // x % y if axis == 1 else ids // (x * y)
        out = out.to(torch.int32)
        return out[:1] if self.grid[axis] == 1 else out

    def mine(self, off: Tensor) -> Tensor:
        """Each element's program plus one, flat, for offsets with all lanes."""
        lanes = self.lanes
        kept = self.mines.get(tuple(off.shape))
        if kept is not None and kept[0] is lanes:
            return kept[1]
        ids = (lanes.ids + 1).to(torch.int32)
        if off.shape[0] != lanes.n:
            ids = ids[:1].expand(off.shape[0])
        per = off.numel() // max(1, off.shape[0])
        out = ids.reshape(-1, 1).expand(-1, per).reshape(-1)
        self.mines[tuple(off.shape)] = (lanes, out)
        return out

    def splat(self, x: Any, shape: tuple[int, ...]) -> Any:
        """A scalar value spread over a tile, as a view."""
        ones = [1] * len(shape)
        return struct(x, lambda t: t.reshape(t.shape[0], *ones).expand(t.shape[0], *shape))

    def reshape(self, x: Any, shape: tuple[int, ...]) -> Any:
        return struct(x, lambda t: t.reshape(t.shape[0], *shape))

    def int_dtype(self, elem: str) -> torch.dtype:
        return int_dtype(elem)

    def select(self, mask: Tensor, a: Any, b: Any, t: Type) -> Any:
        if isinstance(a, Ptr):
            return Ptr.combine(lambda ts: torch.where(mask, ts[0], ts[1]), [a, b])
        return self.domain.select(mask, a, b) if t.is_float else torch.where(mask, a, b)

    def address(self, ptr: Ptr) -> Tensor:
        """Virtual byte addresses."""
        step = nbytes(ptr.elem)
        if isinstance(ptr.buf, int):
            return ptr.off * step + self.memory.buffers[ptr.buf].address
        return ptr.off * step + (ptr.buf * SPACING + FIRST)

    def pointer(self, address: Tensor, elem: str, where: str) -> Ptr:
        """Pointer from byte addresses, virtual or this machine's own (as tables of addresses hold them)."""
        address = self.virtual(address)
        buf = torch.div(address - FIRST + SPACING // 2, SPACING, rounding_mode="floor")
        offset = address - FIRST - buf * SPACING
        step = nbytes(elem)
        if bool((offset % step != 0).any()):
            raise Unsupported(f"a pointer to {elem} that isn't aligned to its {step} bytes", where=where)
        if bool(((buf < 0) | (buf >= len(self.memory.buffers))).any()):
            raise Unsupported("an integer that is no address of an argument is used as a pointer", where=where)
        first = int(buf.reshape(-1)[0])
        off = torch.div(offset, step, rounding_mode="floor")
        return Ptr(first, off, elem) if bool((buf == first).all()) else Ptr(buf, off, elem)

    def virtual(self, address: Tensor) -> Tensor:
        """Addresses with this machine's own replaced by virtual ones, where they lie in a buffer."""
        if not bool((address < FIRST // 2).any()):
            return address
        for buffer in self.memory.buffers:
            low, high = buffer.origin
            inside = (address >= low) & (address < high)
            address = torch.where(inside, address - low + buffer.address, address)
        return address

    def recast(self, ptr: Ptr, elem: str, where: str) -> Ptr:
        """The same addresses as pointers to ``elem``."""
        if nbytes(elem) == nbytes(ptr.elem):
            return Ptr(ptr.buf, ptr.off, elem)
        return self.pointer(self.address(ptr), elem, where)

    def apply(self, region: Region, args: list[Any], repeat: int | None) -> list[Any]:
        """A region of elements: with ``repeat`` each lane stands for that many; without, elementwise as it is."""
        outer = self.frame
        if repeat is None:
            self.frame = Frame(outer, outer.lanes)
        else:
            lead = args[0].shape[0]
            ids = outer.lanes.ids if lead == outer.lanes.n * repeat else outer.lanes.ids[:1]
            self.frame = Frame(outer, Lanes(ids.repeat_interleave(repeat), lead), None, repeat)
        try:
            return self.block(region.blocks[0], args)
        finally:
            self.frame = outer

    # -- running
    def function(self, f: Function, args: list[Any]) -> list[Any]:
        self.frame.values.update(zip(f.args, args, strict=True))
        if len(f.body.blocks) == 1:
            return self.block(f.body.blocks[0], [])
        return self.graph(f)

    def block(self, block: Block, args: list[Any]) -> list[Any]:
        """Runs a block in the present frame; gives the terminator's operands."""
        values = self.frame.values
        for key, value in zip(block.args, args, strict=True):
            values[key] = value
        rules = self.rules
        get = self.frame.get
        for op in block.ops:
            name = op.name
            run = rules.get(name)
            if run is not None:
                out = run(self, op, *[get(o) for o in op.operands])
                if op.results:
                    if len(op.results) == 1:
                        values[op.results[0]] = out
                    else:
                        values.update(zip(op.results, out, strict=True))
                continue
            if name in _ENDS:
                return [get(o) for o in op.operands]
            control = _CONTROL.get(name)
            if control is None:
                if name in ("cf.br", "cf.cond_br"):
                    return []
                raise Unsupported(f"operation {name}", where=op.loc or f"ttir:{op.line}")
            values.update(zip(op.results, getattr(self, control)(op), strict=True))
        return []

    def inside(self, frame: Frame, block: Block, args: list[Any]) -> list[Any]:
        if self.deadline is not None and time.monotonic() > self.deadline:
            raise Unsupported("a launch that takes longer to evaluate than it was given",
                              where=block.ops[0].loc if block.ops else None)  # fmt: skip
        outer = self.frame
        self.frame = frame
        try:
            return self.block(block, args)
        finally:
            self.frame = outer

    def narrowed(self, rel: Tensor | None) -> Frame:
        """A frame for some lanes of the present one (None: all)."""
        lanes = self.lanes
        if rel is None or len(rel) == lanes.n:
            return Frame(self.frame, lanes)
        return Frame(self.frame, Lanes(lanes.ids.index_select(0, rel), len(rel)), rel)

    # -- control flow
    def graph(self, f: Function) -> list[Any]:
        """Blocks in topological order; lanes that reach a block wait there for the others."""
        order = self.order(f)
        base = self.frame
        everyone = torch.arange(base.lanes.n)
        waiting: dict[str, list[tuple[Tensor, list[Any]]]] = {order[0].label: [(everyone, [])]}
        ended: list[tuple[Tensor, list[Any]]] = []
        done: list[Frame] = []
        for block in order:
            groups = waiting.pop(block.label, [])
            if not groups:
                continue
            rel = torch.cat([g for g, _ in groups]).sort().values
            places = [torch.searchsorted(rel, g) for g, _ in groups]
            merged = [merge([(p, g[1][i]) for p, g in zip(places, groups, strict=True)], len(rel))
                      for i in range(len(block.args))]  # fmt: skip
            frame = self.narrowed(rel)
            frame.blocks = list(done)
            out = self.inside(frame, block, merged)
            done.append(frame)
            end = block.ops[-1]
            if not end.successors:
                ended.append((rel, out))
                continue
            for label, some, values in self.targets(frame, end):
                if len(some):
                    waiting.setdefault(label, []).append((rel.index_select(0, some), values))
        if not ended or not ended[0][1]:
            return []
        return [merge([(r, vs[i]) for r, vs in ended], base.lanes.n) for i in range(len(ended[0][1]))]

    def order(self, f: Function) -> list[Block]:
        """Reverse postorder of the blocks; Unsupported if they form a loop."""
        blocks = {b.label: b for b in f.body.blocks}
        out: list[Block] = []
        state: dict[str, int] = {}

        def visit(label: str) -> None:
            state[label] = 1
            end = blocks[label].ops[-1]
            for target, _ in end.successors:
                if state.get(target) == 1:
                    raise Unsupported("a loop in unstructured control flow", where=end.loc)
                if target not in state:
                    visit(target)
            state[label] = 2
            out.append(blocks[label])

        visit(f.body.blocks[0].label)
        return out[::-1]

    def targets(self, frame: Frame, end: Op) -> list[tuple[str, Tensor, list[Any]]]:
        everyone = torch.arange(frame.lanes.n)
        if end.name == "cf.br":
            label, values = end.successors[0]
            return [(label, everyone, [frame.get(v) for v in values])]
        condition = expand_lead(frame.get(end.operands[0]), frame.lanes.n)
        out = []
        for (label, values), side in zip(end.successors, (condition, ~condition), strict=True):
            some = side.nonzero().reshape(-1)
            out.append((label, some, [frame.narrow(frame.get(v), some) for v in values]))
        return out

    def call(self, op: Op) -> list[Any]:
        args = [self.frame.get(o) for o in op.operands]
        callee = self.program.functions.get(op.attrs["callee"])
        if callee is None:
            raise Unsupported(f"call of '{op.attrs['callee']}', which the IR doesn't hold", where=op.loc)
        outer = self.frame
        self.frame = Frame(None, outer.lanes)
        try:
            return self.function(callee, args)
        finally:
            self.frame = outer

    def branch(self, op: Op) -> list[Any]:
        condition = self.frame.get(op.operands[0]).reshape(-1)
        if bool(condition.all()):
            return self.side(op, 0, None)
        if not bool(condition.any()):
            return self.side(op, 1, None)
        parts = []
        for number, side in ((0, condition), (1, ~condition)):
            rel = side.nonzero().reshape(-1)
            parts.append((rel, self.side(op, number, rel)))
        return [merge([(rel, values[i]) for rel, values in parts], self.lanes.n) for i in range(len(op.results))]

    def side(self, op: Op, number: int, rel: Tensor | None) -> list[Any]:
        if number >= len(op.regions):
            return []
        return self.inside(self.narrowed(rel), op.regions[number].blocks[0], [])

    def loop(self, op: Op) -> list[Any]:
        get = self.frame.get
        low, high, step = (get(o) for o in op.operands[:3])
        carried = [get(o) for o in op.operands[3:]]
        body = op.regions[0].blocks[0]
        if low.shape[0] == high.shape[0] == step.shape[0] == 1:
            frame = self.narrowed(None)
            for i in range(int(low), int(high), self.positive(op, int(step))):
                index = torch.tensor([i], dtype=low.dtype)
                carried = self.inside(Frame(frame, frame.lanes), body, [index, *carried])
            return carried
        return self.uneven(op, body, low, high, step, carried)

    def positive(self, op: Op, step: int) -> int:
        if step <= 0:
            raise Unsupported(f"a loop with step {step}", where=op.loc, remedy="steps must be positive")
        return step

    def uneven(self, op: Op, body: Block, low: Tensor, high: Tensor, step: Tensor, carried: list[Any]) -> list[Any]:
        """A loop whose lanes leave at different times: they are dropped as they leave."""
        n = self.lanes.n
        self.positive(op, int(step.min()))
        low, high, step = (expand_lead(t, n) for t in (low, high, step))
        rel, left = torch.arange(n), []
        frame = self.narrowed(None)
        while True:
            going = low < high
            if not bool(going.all()):
                stay, go = going.nonzero().reshape(-1), (~going).nonzero().reshape(-1)
                left.append((rel.index_select(0, go), [frame.narrow(v, go) for v in carried]))
                rel = rel.index_select(0, stay)
                if not len(rel):
                    break
                low, high, step = (t.index_select(0, stay) for t in (low, high, step))
                carried = [frame.narrow(v, stay) for v in carried]
                frame = self.narrowed(rel)
            carried = self.inside(Frame(frame, frame.lanes), body, [low, *carried])
            low = low + step
        return [merge([(r, vs[i]) for r, vs in left], n) for i in range(len(op.results))]

    def while_(self, op: Op) -> list[Any]:
        carried = [self.frame.get(o) for o in op.operands]
        n = self.lanes.n
        rel, left = torch.arange(n), []
        frame = self.narrowed(None)
        before, after = op.regions[0].blocks[0], op.regions[1].blocks[0]
        for _ in range(MAX_ITERATIONS):
            condition, *values = self.inside(Frame(frame, frame.lanes), before, carried)
            if not bool(condition.all()):
                condition = expand_lead(condition, len(rel))
                stay, go = condition.nonzero().reshape(-1), (~condition).nonzero().reshape(-1)
                left.append((rel.index_select(0, go), [frame.narrow(v, go) for v in values]))
                rel = rel.index_select(0, stay)
                if not len(rel):
                    return [merge([(r, vs[i]) for r, vs in left], n) for i in range(len(op.results))]
                values = [frame.narrow(v, stay) for v in values]
                frame = self.narrowed(rel)
            carried = self.inside(Frame(frame, frame.lanes), after, values)
        raise Unsupported(f"a while loop of more than {MAX_ITERATIONS} turns", where=op.loc,
                          remedy="programs that wait for programs after them can't be evaluated in order")  # fmt: skip


_ENDS = frozenset({"tt.return", "scf.yield", "scf.condition", "tt.reduce.return", "tt.scan.return",
                   "tt.map_elementwise.return", "ub.unreachable", "llvm.unreachable"})  # fmt: skip
_CONTROL = {"scf.for": "loop", "scf.while": "while_", "scf.if": "branch", "tt.call": "call"}  # methods
