"""Runs one launch of a Triton kernel in a domain, on the CPU."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ..errors import KernelError, Unsupported
from .compile import CUDA_90, Compiled, compile, unwrap
from .domains.base import Domain
from .domains.machine import Machine
from .evaluate import Evaluator
from .memory import Buffer, Memory
from .program import Program, Type
from .records import Result
from .values import ELEM, FLOATS, Ptr, int_dtype

CHUNK_ELEMENTS = 1 << 18


@dataclass(frozen=True)
class Arg:
    """A pointer argument: ``storage`` is flat (a tensor, or in other domains the domain's one-dimensional value),
    ``offset`` in elements where the argument points, ``dtype`` the element's torch dtype as the kernel sees it.
    Arguments that share a storage pass the same object, or tensors of one memory."""

    storage: Any
    offset: int = 0
    dtype: torch.dtype | None = None

    def data_ptr(self) -> int:
        """As Triton's specialisation asks: alignment of the address, taking storages to be aligned."""
        if self.dtype is None:
            raise KernelError("an argument with a domain's own storage needs its dtype")
        return self.offset * torch.empty(0, dtype=self.dtype).element_size()


def arg(tensor: Tensor) -> Arg:
    """The whole storage behind a tensor, flat, and where the tensor starts in it."""
    flat = torch.empty(0, dtype=tensor.dtype)
    flat.set_(tensor.untyped_storage(), 0, (tensor.untyped_storage().nbytes() // tensor.element_size(),), (1,))
    return Arg(flat, tensor.storage_offset(), tensor.dtype)


def run(fn: Any, grid: Any, args: tuple[Any, ...] | list[Any], kwargs: dict[str, Any] | None = None, *,
        domain: Domain | None = None, uninitialised: Iterable[str] = (), track: bool = True,
        programs: Iterable[int] | None = None, target: tuple[str, int | str, int] = CUDA_90,
        chunk_elements: int = CHUNK_ELEMENTS) -> Result:  # fmt: skip
    """Evaluates a launch and writes its outputs into the storages of its arguments.

    ``fn`` is a ``@triton.jit`` function or a ``Compiled`` one (then ``args`` are all runtime arguments, in order).
    ``args`` and ``kwargs`` are the launch's, constexprs and options included; tensors may be given as they are or as
    ``Arg``. ``grid`` is a tuple of up to three sizes, or a function of the arguments by name. ``uninitialised`` names
    arguments whose memory holds nothing yet; ``programs`` limits the launch to these positions (x fastest);
    ``track=False`` leaves out races and write counts. Raises KernelError where the kernel doesn't compile or the
    arguments don't fit, Unsupported with the source line where the evaluator has no rule."""
    start = time.perf_counter()
    domain = domain or Machine()
    if isinstance(fn, Compiled):
        compiled, named = fn, dict(zip(fn.names, args, strict=True))
    else:
        fn = unwrap(fn)
        compiled = compile(fn, tuple(args), kwargs, target=target)
        named = bind(fn, args, kwargs or {})
    sizes = grid_of(grid, {**compiled.constexprs, **named})
    values = [named[n] for n in compiled.names]
    out = evaluate(compiled.program, compiled.names, sizes, values, domain, frozenset(uninitialised), track, programs,
                   chunk_elements)  # fmt: skip
    out.seconds = time.perf_counter() - start
    return out


def bind(fn: Any, args: tuple[Any, ...] | list[Any], kwargs: dict[str, Any]) -> dict[str, Any]:
    """Arguments by parameter name, defaults included; launch options are left out."""
    names = set(fn.signature.parameters)
    try:
        bound = fn.signature.bind(*args, **{k: v for k, v in kwargs.items() if k in names})
    except TypeError as e:
        raise KernelError(f"arguments don't fit kernel '{fn.__name__}': {e}") from None
    bound.apply_defaults()
    return dict(bound.arguments)


def grid_of(grid: Any, named: dict[str, Any]) -> tuple[int, int, int]:
    """The grid as three sizes."""
    if isinstance(grid, Callable):  # type: ignore[arg-type]
        grid = grid(named)
    sizes = (grid,) if isinstance(grid, int) else tuple(grid)
    x, y, z = (int(s) for s in (*sizes, 1, 1)[:3])
    return x, y, z


def evaluate(program: Program, names: tuple[str, ...], grid: tuple[int, int, int], args: list[Any], domain: Domain,
             uninitialised: frozenset[str] = frozenset(), track: bool = True, programs: Iterable[int] | None = None,
             chunk_elements: int = CHUNK_ELEMENTS) -> Result:  # fmt: skip
    """``run`` for a Program: ``args`` are its entry's arguments, in order, with ``names`` for reports."""
    types = program.entry.arg_types
    if len(args) != len(types):
        raise KernelError(f"the kernel takes {len(types)} runtime arguments, got {len(args)}")
    buffers, values = _arguments(program, names, args, domain, uninitialised, track)
    memory = Memory(domain, buffers, grid)
    evaluator = Evaluator(program, domain, memory, grid)
    count = grid[0] * grid[1] * grid[2]
    ids = torch.arange(count) if programs is None else torch.tensor(sorted(programs), dtype=torch.int64)
    sequential = waits(program)
    size = 1 if sequential else max(1, chunk_elements // max(1, program.largest_tile))
    with torch.set_grad_enabled(domain.name == "real" and torch.is_grad_enabled()):
        for first in range(0, len(ids), size):
            evaluator.run(ids[first : first + size], values)
    outputs = {n: b.storage for b in buffers for n in b.names}
    return Result(outputs, memory.faults, memory.races, memory.uninitialised, memory.undefineds(), memory.writes(),
                  list(memory.accesses.values()), domain.ledger, count, len(ids), sequential, domain.name)  # fmt: skip


def waits(program: Program) -> bool:
    """Whether a program may wait for another: a while loop around an atomic."""
    from .program import walk

    for op in program.ops():
        if op.name == "scf.while" and any(
            o.name.startswith("tt.atomic") or o.attrs.get("isVolatile") for r in op.regions for o in walk(r)
        ):
            return True
    return False


def _arguments(program: Program, names: tuple[str, ...], args: list[Any], domain: Domain, uninitialised: frozenset[str],
               track: bool) -> tuple[list[Buffer], list[Any]]:  # fmt: skip
    buffers: list[Buffer] = []
    values: list[Any] = []
    by_memory: dict[Any, int] = {}
    written = program.written_args
    for i, (name, value, t) in enumerate(zip(names, args, program.entry.arg_types, strict=True)):
        if t.elem == "ptr":
            number, offset = _buffer(name, value, t, domain, buffers, by_memory)
            if track and (written is None or i in written or name in uninitialised) and not buffers[number].tracked:
                buffers[number].track()
            buffers[number].uninitialised |= name in uninitialised
            values.append(Ptr(number, torch.tensor([offset]), t.pointee))
        else:
            values.append(_scalar(name, value, t, domain))
    return buffers, values


def _scalar(name: str, value: Any, t: Type, domain: Domain) -> Any:
    if t.is_float:
        return domain.scalar(value, t)
    if t.elem == "desc":
        raise Unsupported(f"argument '{name}': a tensor descriptor made on the host")
    if isinstance(value, Tensor):
        return value.reshape(1).to(int_dtype(t.elem))
    wrapped = int(value)
    if t.elem != "i1":
        width = 8 * torch.empty(0, dtype=int_dtype(t.elem)).element_size()
        wrapped = (wrapped + (1 << (width - 1))) % (1 << width) - (1 << (width - 1))
    return torch.tensor([wrapped], dtype=int_dtype(t.elem))


def _buffer(name: str, value: Any, t: Type, domain: Domain, buffers: list[Buffer], by_memory: dict[Any, int]) -> tuple[int, int]:
    """Number of the buffer that an argument points into, and where in it."""
    given = arg(value) if isinstance(value, Tensor) else value
    if not isinstance(given, Arg):
        raise KernelError(f"argument '{name}' is a pointer in the kernel, got {type(value).__name__}")
    storage = given.storage
    key: Any = ("object", id(storage))
    if isinstance(storage, Tensor):
        address = storage.untyped_storage().data_ptr()
        key = ("memory", address) if address else key
        if given.dtype is None:
            given = Arg(storage, given.offset, storage.dtype)
    elem = ELEM.get(given.dtype, t.pointee) if given.dtype is not None else t.pointee
    if key in by_memory:
        return by_memory[key], given.offset
    if isinstance(storage, Tensor) and elem not in FLOATS:
        storage = storage.view(int_dtype(elem))
    if elem in FLOATS:
        storage = domain.cast_storage(storage, elem, name)
    for_names = [name]
    buffers.append(Buffer(len(buffers), storage, elem, int(storage.shape[0]), for_names))
    by_memory[key] = len(buffers) - 1
    return len(buffers) - 1, given.offset
