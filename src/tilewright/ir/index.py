"""One launch at sizes that no machine here could hold: addresses and masks are computed, storages have no memory.

Integers wrap at their exact width, so an offset that outgrows 32 bits leaves its storage and is a fault. A sample of
the grid's programs is evaluated: corners, their neighbours, random ones. Of a long loop only the first turns, one in
the middle and the last two are run, after a check that every integer and pointer which it carries grows by the same
step each turn; a loop whose steps differ is run whole. Storages hold one value: zeros, or what the caller says.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

from .arguments import bind, flatten, place
from .compile import CUDA_90, _bind, _binder, _packed, compile, unwrap
from .domains.machine import Machine
from .evaluate import Evaluator
from .frames import Frame
from .memory import Memory
from .phantom import Phantom, corners
from .program import Op, Program
from .records import Result
from .values import Ptr, merge, nbytes

SHORT = 16
SECTOR = 32  # bytes that a GPU's memory moves at once
CHUNK_ELEMENTS = 1 << 18
LIMITS = (2**31 - 1, 65535, 65535)


class Filled(Phantom):
    """A storage that holds ``value`` everywhere. ``reads`` counts how often it was asked."""

    def __init__(self, size: int, dtype: torch.dtype, value: int = 0, root: Filled | None = None):
        super().__init__(size, dtype)
        self.value = value
        self.root = root or self
        self.reads = 0

    def view(self, dtype: torch.dtype) -> Phantom:
        plain = super().view(dtype)
        same = torch.empty(0, dtype=dtype).element_size() == torch.empty(0, dtype=self.dtype).element_size()
        return Filled(plain.size, dtype, self.value if same else 0, self.root)

    def index_select(self, axis: int, index: Tensor) -> Tensor:
        self.root.reads += 1
        return torch.full((len(index),), self.value, dtype=self.dtype)


class Leaping(Evaluator):
    """An evaluator that leaps over the turns of long loops."""

    def loop(self, op: Op) -> list[Any]:
        low, high, step = (self.frame.get(o) for o in op.operands[:3])
        self.positive(op, int(step.min()))
        wide = [t.to(torch.int64) for t in (low, high, step)]
        turns = torch.div(wide[1] - wide[0] + wide[2] - 1, wide[2], rounding_mode="floor").clamp(min=0)
        long = turns > SHORT
        if not bool(long.any()):
            return super().loop(op)
        if bool(long.all()):
            return self.leap(op, turns)
        parts = []
        for chosen, run in ((~long, super().loop), (long, lambda o: self.leap(o, turns[long]))):
            rel = chosen.nonzero().reshape(-1)
            outer, self.frame = self.frame, self.narrowed(rel)
            try:
                parts.append((rel, run(op)))
            finally:
                self.frame = outer
        return [merge([(rel, values[i]) for rel, values in parts], self.lanes.n) for i in range(len(op.results))]

    def leap(self, op: Op, turns: Tensor) -> list[Any]:
        """The first three turns, the middle one, the last two."""
        get = self.frame.get
        low, _, step = (get(o) for o in op.operands[:3])
        body = op.regions[0].blocks[0]
        frame = self.narrowed(None)

        def turn(number: Tensor | int, carried: list[Any]) -> list[Any]:
            index = (low.to(torch.int64) + step.to(torch.int64) * number).to(low.dtype)
            return self.inside(Frame(frame, frame.lanes), body, [index, *carried])

        one = turn(0, [get(o) for o in op.operands[3:]])
        two = turn(1, one)
        three = turn(2, two)
        if not all(_steady(a, b, c) for a, b, c in zip(one, two, three, strict=True)):
            return super().loop(op)
        turn(turns // 2, [_ahead(b, c, turns // 2 - 3) for b, c in zip(two, three, strict=True)])
        carried = turn(turns - 2, [_ahead(b, c, turns - 5) for b, c in zip(two, three, strict=True)])
        return turn(turns - 1, carried)


def _steady(a: Any, b: Any, c: Any) -> bool:
    """Whether an integer or pointer grew by the same step twice."""
    if isinstance(a, Ptr):
        same = isinstance(a.buf, int) and a.buf == b.buf == c.buf
        return same and bool((c.off - b.off == b.off - a.off).all())
    if not isinstance(a, Tensor) or a.is_floating_point():
        return True
    if a.dtype is torch.bool:
        return bool((a == b).all()) and bool((b == c).all())
    return bool((c - b == b - a).all())


def _ahead(b: Any, c: Any, turns: Tensor) -> Any:
    """What ``c`` becomes after ``turns`` more steps like the one from ``b``. Floats stay as they are."""
    if isinstance(c, Ptr):
        return Ptr(c.buf, _ahead(b.off, c.off, turns), c.elem)
    if not isinstance(c, Tensor) or c.is_floating_point() or c.dtype is torch.bool:
        return c
    many = turns.reshape(-1, *([1] * (c.dim() - 1))).to(c.dtype)
    return c + (c - b) * many


_STEERS = {"scf.for": slice(0, 3), "scf.if": slice(0, 1), "cf.cond_br": slice(0, 1), "scf.condition": slice(0, 1)}


@lru_cache(maxsize=64)
def steering(program: Program) -> set[str]:
    """Source lines of loads whose values decide where or whether something is accessed: they reach an address, a mask,
    a loop's range or a branch."""
    from_loads: dict[int, set[str]] = {}
    found: set[str] = set()
    while True:
        before = sum(map(len, from_loads.values())) + len(found)
        for op in program.ops():
            _spread(program, op, from_loads, found)
        if sum(map(len, from_loads.values())) + len(found) == before:
            return found


def _spread(program: Program, op: Op, known: dict[int, set[str]], found: set[str]) -> None:
    """One operation's part in ``steering``: what it passes on, and whether it is steered."""
    reads = "load" in op.name or "gather" in op.name or op.name.startswith("tt.atomic")
    if reads:
        steers: Sequence[int] = op.operands
    elif op.name in ("tt.store", "tt.descriptor_store"):
        steers = [o for i, o in enumerate(op.operands) if i != 1]
    else:
        steers = op.operands[_STEERS.get(op.name, slice(0))]
    for o in steers:
        found |= known.get(o, set())
    if reads:
        for r in op.results:
            known.setdefault(r, set()).add(op.loc)
        return
    for source, target in _edges(program, op):
        if source in known:
            known.setdefault(target, set()).update(known[source])


def _edges(program: Program, op: Op) -> Iterator[tuple[int, int]]:
    """From which value to which an operation passes things on."""
    inner = [b for r in op.regions for b in r.blocks]
    ends = [list(b.ops[-1].operands) if b.ops else [] for b in inner]
    if op.name == "scf.for":
        yield from zip(op.operands[3:], inner[0].args[1:], strict=False)
        yield from zip(ends[0], inner[0].args[1:], strict=False)
        yield from zip((*ends[0], *op.operands[3:]), (*op.results, *op.results), strict=False)
        yield op.operands[0], inner[0].args[0]
    elif op.name == "scf.if":
        yield from ((s, t) for e in ends for s, t in zip(e, op.results, strict=False))
    elif op.name == "scf.while":
        before, after = inner[0], inner[1]
        yield from zip(op.operands, before.args, strict=False)
        yield from zip(ends[0][1:], after.args, strict=False)
        yield from zip(ends[0][1:], op.results, strict=False)
        yield from zip(ends[1], before.args, strict=False)
    elif op.name == "tt.call":
        callee = program.functions[op.attrs["callee"]]
        yield from zip(op.operands, callee.args, strict=False)
        returned = [e.operands for b in callee.body.blocks for e in b.ops if e.name == "tt.return"]
        yield from ((s, t) for e in returned for s, t in zip(e, op.results, strict=False))
    else:
        sources = [*op.operands, *(o for e in ends for o in e)]
        yield from ((s, t) for s in sources for t in (*op.results, *(a for b in inner for a in b.args)))
        blocks = {b.label: b for f in program.functions.values() for b in f.body.blocks}
        for label, values in op.successors:
            yield from zip(values, blocks[label].args, strict=False)


def too_large(grid: Sequence[int]) -> str:
    """Why a GPU refuses a grid; empty if it doesn't."""
    for axis, size, most in zip("xyz", grid, LIMITS, strict=False):
        if size > most:
            return f"{size} programs along grid axis {axis}, which holds at most {most}"
    return ""


def probe(
    fn: Any,
    grid: tuple[int, int, int],
    args: Sequence[Any],
    kwargs: dict[str, Any],
    *,
    extra: int = 12,
    seed: int = 0,
    seconds: float | None = None,
    also: Sequence[int] = (),
    target: tuple[str, int | str, int] = CUDA_90,
) -> tuple[Result, set[str]]:
    """Evaluates a sample of a launch's programs over storages without memory (``Arg(Filled(...))``).

    ``grid`` has three sizes; ``extra`` random programs, and those at the positions ``also``, are added to the corners.
    Also gives the source lines of loads that steer (``steering``). Raises KernelError and Unsupported as ``launch.run``
    does."""
    walker, values, compiled = _ready(Leaping, fn, grid, args, kwargs, seconds, target)
    count = grid[0] * grid[1] * grid[2]
    chosen = {*corners(grid, extra, seed), *(p for p in also if p < count)}
    ids = torch.tensor(sorted(chosen), dtype=torch.int64)
    size = max(1, CHUNK_ELEMENTS // max(1, compiled.program.largest_tile))
    with torch.no_grad():
        for first in range(0, len(ids), size):
            walker.run(ids[first : first + size], values)
    memory, domain = walker.memory, walker.domain
    result = Result(
        {},
        memory.faults,
        [],
        [],
        memory.undefineds(),
        {},
        list(memory.accesses.values()),
        domain.ledger,
        grid[0] * grid[1] * grid[2],
        len(ids),
        domain=domain.name,
    )
    return result, steering(compiled.program)


def described(fn: Any, grid: Sequence[int], kwargs: dict[str, Any], *, text: bool = False) -> dict[str, Any]:
    """A launch as data, without evaluating it: ``function``, ``grid``, ``slots`` ([name, Triton's type, value] of each
    runtime argument in the order of the IR's; a storage is [its object, offset, dtype]), ``constexprs``, ``signature``,
    and with ``text`` the IR of its specialisation. Raises KernelError where the arguments don't fit."""
    fn = unwrap(fn)
    backend, binder = _binder(fn, CUDA_90)
    bound, spec, options = _bind(fn, backend, binder, (), dict(kwargs, debug=False))
    _, signature, constexprs, _ = _packed(fn, backend, kwargs, bound, spec, options)
    named = bind(fn, (), kwargs)
    fixed = {str(fn.arg_names[p[0]]) + "".join(f".{i}" for i in p[1:]): v for p, v in constexprs.items()}
    slots = [[n, _kind(signature, n), _slot(v)] for n, v in flatten(signature, named)]
    out = {"function": fn.__name__, "grid": list(grid), "slots": slots, "signature": _names(signature),
           "constexprs": {n: getattr(v, "__name__", None) or repr(v) for n, v in fixed.items()}}  # fmt: skip
    return {**out, "text": compile(fn, (), kwargs).program.text} if text else out


def _kind(signature: dict[str, Any], name: str) -> str:
    first, *rest = name.split(".")
    found: Any = signature.get(first, "")
    for part in rest:
        found = found[int(part)] if isinstance(found, tuple | list) else "i64"
    return str(found)


def _names(signature: dict[str, Any]) -> dict[str, str]:
    return {n: str(t) for n, t in signature.items()}


def _slot(value: Any) -> Any:
    base = getattr(value, "base", value)
    if hasattr(base, "storage"):
        return [base.storage, base.offset, str(base.dtype).removeprefix("torch.")]
    return int(value) if isinstance(value, int | bool) else None


def sectors(
    fn: Any, grid: tuple[int, int, int], kwargs: dict[str, Any], seconds: float | None = None
) -> dict[tuple[str, str], list[int]]:
    """What the program in the middle of a grid touches (``Sectors.touched``), over storages without memory."""
    walker, values, _ = _ready(Sectors, fn, grid, (), kwargs, seconds, CUDA_90)
    with torch.no_grad():
        walker.run(torch.tensor([grid[0] * grid[1] * grid[2] // 2]), values)
    return walker.touched


def _ready(
    kind: Any, fn: Any, grid: Any, args: Sequence[Any], kwargs: dict[str, Any], seconds: float | None, target: Any
) -> tuple[Any, list[Any], Any]:
    """An evaluator of ``kind`` over a launch, the values of its arguments, and the compiled function."""
    fn = unwrap(fn)
    compiled = compile(fn, tuple(args), kwargs, target=target)
    flat = flatten(compiled.signature, bind(fn, tuple(args), kwargs))
    domain = Machine()
    names = tuple(n for n, _ in flat)
    buffers, values = place(compiled.program, names, [v for _, v in flat], domain, frozenset(), False)
    return kind(compiled.program, domain, Memory(domain, buffers, grid), grid, seconds), values, compiled


class Sectors(Leaping):
    """Also notes, for the first program alone, how many 32-byte sectors each load and store touches and how many bytes
    of them it uses: ``touched[line, kind]`` is [sectors, bytes used, step between neighbouring elements]."""

    def __init__(self, *args: Any):
        super().__init__(*args)
        self.touched: dict[tuple[str, str], list[int]] = {}
        self.rules = {**self.rules, "tt.load": self._watched("tt.load", 0), "tt.store": self._watched("tt.store", 1)}

    def _watched(self, name: str, mask_at: int) -> Any:
        rule = self.rules[name]

        def run(ev: Any, op: Op, ptr: Ptr, *rest: Any) -> Any:
            self.note(op, name.removeprefix("tt."), ptr, rest[mask_at] if len(rest) > mask_at else None)
            return rule(ev, op, ptr, *rest)

        return run

    def note(self, op: Op, kind: str, ptr: Ptr, mask: Tensor | None) -> None:
        off = ptr.off[:1]
        if mask is not None:
            off, keep = torch.broadcast_tensors(off, mask[:1])
            off = off[keep]
        flat = off.reshape(-1).unique()
        if not len(flat):
            return
        size = nbytes(ptr.elem)
        totals = self.touched.setdefault((op.loc, kind), [0, 0, 0])
        totals[0] += len(torch.div(flat * size, SECTOR, rounding_mode="floor").unique())
        totals[1] += len(flat) * size
        if len(flat) > 1:
            totals[2] = int((flat[1:] - flat[:-1]).min())
