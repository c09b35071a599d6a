"""Runs one launch of a Triton kernel in a domain, on the CPU."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch

from ..errors import KernelError
from .arguments import Arg, arg, bind, flatten, place
from .compile import CUDA_90, Compiled, compile, unwrap
from .domains.base import Domain
from .domains.machine import Machine
from .evaluate import Evaluator
from .memory import Memory
from .program import Program, walk
from .records import Result

__all__ = ["Arg", "arg", "evaluate", "run"]
CHUNK_ELEMENTS = 1 << 18


def run(
    fn: Any,
    grid: Any,
    args: tuple[Any, ...] | list[Any],
    kwargs: dict[str, Any] | None = None,
    *,
    domain: Domain | None = None,
    uninitialised: Iterable[str] = (),
    track: bool = True,
    programs: Iterable[int] | None = None,
    target: tuple[str, int | str, int] = CUDA_90,
    seconds: float | None = None,
    reachable: Sequence[Any] = (),
    chunk_elements: int = CHUNK_ELEMENTS,
) -> Result:
    """Evaluates a launch and writes its outputs into the storages of its arguments.

    ``fn`` is a ``@triton.jit`` function, or a ``Compiled`` one (then ``args`` are its runtime arguments in the order of
    ``names``). ``args`` and ``kwargs`` are the launch's, constexprs and options included; tensors may be given as they
    are or as ``Arg``. ``grid`` is a tuple of up to three sizes, or a function of the arguments by name.
    ``uninitialised`` names arguments whose memory holds nothing yet; ``programs`` limits the launch to these positions
    (x fastest); ``track=False`` leaves out races and write counts; ``seconds`` is a limit on the evaluation's time;
    ``reachable`` are further tensors, which the kernel reaches through tables of addresses.
    Float storages are written in place by the machine domain alone, others give them in ``Result.outputs``; integer ones
    are written in place in every domain.

    Raises KernelError where the kernel doesn't compile or the arguments don't fit, Unsupported with the source line
    where the evaluator has no rule or the time is up."""
    start = time.perf_counter()
    if isinstance(fn, Compiled):
        if len(args) != len(fn.names):
            raise KernelError(f"kernel '{fn.name}' takes {len(fn.names)} runtime arguments, got {len(args)}")
        compiled, named = fn, dict(zip(fn.names, args, strict=True))
    else:
        fn = unwrap(fn)
        compiled = compile(fn, tuple(args), kwargs, target=target)
        named = bind(fn, args, kwargs or {})
    flat = flatten(compiled.signature, named)
    out = evaluate(compiled.program, tuple(n for n, _ in flat), grid_of(grid, {**compiled.constexprs, **named}),
                   [v for _, v in flat], domain or Machine(), uninitialised=frozenset(uninitialised), track=track,
                   programs=programs, seconds=seconds, reachable=reachable, chunk_elements=chunk_elements)  # fmt: skip
    out.seconds = time.perf_counter() - start
    return out


def evaluate(
    program: Program,
    names: tuple[str, ...],
    grid: tuple[int, int, int],
    args: list[Any],
    domain: Domain,
    *,
    uninitialised: frozenset[str] = frozenset(),
    track: bool = True,
    programs: Iterable[int] | None = None,
    seconds: float | None = None,
    reachable: Sequence[Any] = (),
    chunk_elements: int = CHUNK_ELEMENTS,
) -> Result:
    """``run`` for a Program: ``args`` are its entry's arguments, in order, with ``names`` for reports."""
    if len(args) != len(program.entry.arg_types):
        raise KernelError(f"the kernel takes {len(program.entry.arg_types)} runtime arguments, got {len(args)}")
    buffers, values = place(program, names, args, domain, uninitialised, track, reachable)
    memory = Memory(domain, buffers, grid)
    evaluator = Evaluator(program, domain, memory, grid, seconds)
    count = grid[0] * grid[1] * grid[2]
    ids = torch.arange(count) if programs is None else torch.tensor(sorted(programs), dtype=torch.int64)
    sequential = waits(program)
    size = 1 if sequential else max(1, chunk_elements // max(1, program.largest_tile))
    with torch.set_grad_enabled(domain.name == "real" and torch.is_grad_enabled()):
        for first in range(0, len(ids), size):
            evaluator.run(ids[first : first + size], values)
    outputs = {n: b.storage for b in buffers for n in b.names}
    return Result(outputs, memory.faults, memory.races, memory.uninitialised, memory.undefineds(), memory.writes(),
                  list(memory.accesses.values()), domain.ledger, count, len(ids), sequential, domain.name,
                  synchronises=synchronises(program, evaluator.used), unreleased=unreleased(program))  # fmt: skip


def grid_of(grid: Any, named: dict[str, Any]) -> tuple[int, int, int]:
    """The grid as three sizes."""
    if isinstance(grid, Callable):  # type: ignore[arg-type]
        grid = grid(named)
    sizes = (grid,) if isinstance(grid, int) else tuple(grid)
    x, y, z = (int(s) for s in (*sizes, 1, 1)[:3])
    return x, y, z


def waits(program: Program) -> bool:
    """Whether a program may wait for another: a while loop around an atomic or a volatile load. Such programs are
    evaluated one after the other."""
    for op in program.ops():
        if op.name == "scf.while" and any(
            o.name.startswith("tt.atomic") or o.attrs.get("isVolatile") for r in op.regions for o in walk(r)
        ):
            return True
    return False


def synchronises(program: Program, used: set[int]) -> bool:
    """Whether programs may order themselves: an atomic's old value is used, as by locks, tickets and counters."""
    return any(op.name.startswith("tt.atomic") and any(r in used for r in op.results) for op in program.ops())


def unreleased(program: Program) -> tuple[str, ...]:
    """Lines of plain stores that every program makes after its last atomic: no atomic tells another program that they
    are there. Stores under a condition are left out, since it may be an atomic's word that others are done."""
    blocks = program.entry.body.blocks
    if len(blocks) != 1:
        return ()
    ops = blocks[0].ops
    last = max((i for i, op in enumerate(ops) if _orders(op)), default=len(ops))
    return tuple(dict.fromkeys(op.loc for op in ops[last + 1 :] if op.name == "tt.store"))


def _orders(op: Any) -> bool:
    """Whether an operation is, holds or calls what may hold an atomic."""
    return any(
        o.name.startswith("tt.atomic") or o.name == "tt.call" for o in (op, *(o for r in op.regions for o in walk(r)))
    )
