"""Memory of one launch: buffers, bounds, and who touched what.

A buffer is one storage (arguments that share a storage share the buffer). Accesses out of range are recorded and have
no effect: a store is dropped, a load gives poison. Buffers that the kernel may write are tracked per element: who wrote
it, how often, who read it; two programs on one element, one of them writing, is a race. Buffers that the kernel only
reads need no tracking, so they cost nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from ..errors import Unsupported
from .domains.base import Domain
from .phantom import Phantom
from .program import Type
from .records import KEPT, Access, Fault, Race, Undefined, Uninitialised, Writes
from .values import FLOATS, Ptr, bits, int_dtype

MANY = -1
Same = Callable[[Tensor], bool]
FIRST = 1 << 62
SPACING = 1 << 44


@dataclass
class Buffer:
    """``storage`` is one-dimensional, of element type ``elem``; ``names`` are the arguments that point into it;
    ``origin`` the span of this machine's addresses that the caller's storage has."""

    number: int
    storage: Any
    elem: str
    size: int
    names: list[str]
    tracked: bool = False
    uninitialised: bool = False
    origin: tuple[int, int] = (0, 0)
    touched: dict[str, Tensor] = field(default_factory=dict)

    def table(self, name: str) -> Tensor:
        """Per element, made when first asked for: ``writer``, ``reader`` and ``atomic`` hold a program's position plus
        one (0: nobody, MANY: several), ``count`` the number of stores."""
        if name not in self.touched:
            self.touched[name] = torch.zeros(self.size, dtype=torch.int32)
        return self.touched[name]

    @property
    def address(self) -> int:
        """Virtual byte address of element 0: buffers lie so far apart that none is reached from another, and above all
        addresses of this machine."""
        return FIRST + self.number * SPACING


class Memory:
    """All buffers of a launch and the records of their use. ``grid`` turns a program's position into its ids."""

    def __init__(self, domain: Domain, buffers: list[Buffer], grid: tuple[int, int, int]):
        self.domain = domain
        self.buffers = buffers
        self.grid = grid
        self.faults: list[Fault] = []
        self.races: list[Race] = []
        self.uninitialised: list[Uninitialised] = []
        self.undefined: dict[tuple[str, str, str], int] = {}
        self.accesses: dict[tuple[str, str, int], Access] = {}
        self.dropped: dict[tuple[str, str, str], int] = {}

    # -- resolving addresses
    def parts(self, ptr: Ptr, mask: Tensor | None) -> list[tuple[Buffer, Ptr, Tensor | None]]:
        """One (buffer, pointer, mask) for each buffer that ``ptr`` leads to."""
        if isinstance(ptr.buf, int):
            return [(self.buffer(ptr.buf), ptr, mask)]
        out = []
        for number in ptr.buf.unique().tolist():
            here = ptr.buf == number
            both = here if mask is None else here & mask
            if bool(both.any()):
                out.append((self.buffer(number), Ptr(number, ptr.off, ptr.elem), both))
        return out

    def buffer(self, number: int) -> Buffer:
        return self.buffers[number]

    def note(self, kind: str, where: str, buffer: Buffer, elem: str, elements: int, active: int) -> None:
        key = (kind, where, buffer.number)
        access = self.accesses.get(key)
        if access is None:
            access = self.accesses[key] = Access(kind, where, buffer.names[0] if buffer.names else "?", elem)
        access.times += 1
        access.elements += elements
        access.active += active

    def span(self, kind: str, where: str, buffer: Buffer, low: int, high: int) -> None:
        """Widens an access's range of elements."""
        access = self.accesses[kind, where, buffer.number]
        access.low = low if access.low is None else min(access.low, low)
        access.high = high if access.high is None else max(access.high, high)

    def view(self, buffer: Buffer, elem: str, where: str) -> Any:
        """The buffer's storage read as ``elem``."""
        if buffer.elem == elem:
            return buffer.storage
        name = buffer.names[0]
        if not isinstance(buffer.storage, Tensor | Phantom) or self.domain.name != "machine":
            raise Unsupported(f"'{name}' holds {buffer.elem} and is accessed as {elem}", where=where)
        dtype = FLOATS[elem] if elem in FLOATS else int_dtype("i8" if elem == "i1" else elem)
        if bits(elem) == bits(buffer.elem):
            return buffer.storage.view(dtype)
        if buffer.tracked:
            what = f"'{name}' holds {buffer.elem}, may be written, and is accessed with another width, {elem}"
            raise Unsupported(what, where=where)
        whole = buffer.size - buffer.size % max(1, bits(elem) // bits(buffer.elem))
        return (buffer.storage[:whole] if isinstance(buffer.storage, Tensor) else buffer.storage).view(dtype)

    # -- checks
    def fault(
        self, kind: Any, where: str, buffer: Buffer, offset: int, size: int, program: int, count: int, masked: bool
    ) -> None:
        key = (kind, where, buffer.names[0] if buffer.names else "?")
        for i, f in enumerate(self.faults):
            if (f.kind, f.where, f.argument) == key:
                self.faults[i] = Fault(
                    f.kind, f.where, f.argument, f.offset, f.size, f.program, f.count + count, f.masked
                )
                return
        self.faults.append(Fault(kind, where, key[2], offset, size, self.ids(program), count, masked))

    def ids(self, program: int) -> tuple[int, int, int]:
        x, y, _ = self.grid
        return program % x, program // x % y, program // (x * y)

    def race(
        self, kind: Any, where: str, buffer: Buffer, index: Tensor, mine: Tensor, other: Tensor, same: bool
    ) -> None:
        key = (kind, where, buffer.names[0] if buffer.names else "?")
        for i, r in enumerate(self.races):
            if (r.kind, r.where, r.argument) == key:
                self.races[i] = Race(r.kind, r.where, r.argument, r.offset, r.programs, r.count + len(index),
                                     r.same_value and same)  # fmt: skip
                return
        if len(self.races) < KEPT:
            pair = (int(mine[0]) - 1, int(other[0]) - 1 if int(other[0]) > 0 else -1)
            self.races.append(Race(kind, where, key[2], int(index[0]), pair, len(index), same))

    def clash(self, kind: str, where: str, buffer: Buffer, table: str, index: Tensor, mine: Tensor) -> None:
        """Records a race where ``table`` names another program than ``mine``."""
        if table not in buffer.touched:
            return
        other = buffer.table(table).index_select(0, index)
        bad = (other != 0) & (other != mine)
        if bool(bad.any()):
            self.race(kind, where, buffer, index[bad], mine[bad], other[bad], False)

    # -- tracking
    def saw_read(self, buffer: Buffer, index: Tensor, mine: Tensor, where: str) -> None:
        self.clash("read/write", where, buffer, "writer", index, mine)
        self.clash("atomic/read", where, buffer, "atomic", index, mine)
        if buffer.uninitialised:
            fresh = buffer.table("writer").index_select(0, index) == 0
            if "atomic" in buffer.touched:
                fresh &= buffer.table("atomic").index_select(0, index) == 0
            if bool(fresh.any()):
                self.saw_uninitialised(buffer, index[fresh], mine[fresh], where)
        self.stamp(buffer.table("reader"), index, mine)

    def saw_uninitialised(self, buffer: Buffer, index: Tensor, mine: Tensor, where: str) -> None:
        name = buffer.names[0] if buffer.names else "?"
        for i, u in enumerate(self.uninitialised):
            if (u.where, u.argument) == (where, name):
                self.uninitialised[i] = Uninitialised(where, name, u.offset, u.program, u.count + len(index))
                return
        self.uninitialised.append(Uninitialised(where, name, int(index[0]), int(mine[0]) - 1, len(index)))

    def stamp(self, table: Tensor, index: Tensor, mine: Tensor) -> tuple[Tensor, Tensor]:
        """Writes ``mine`` into ``table`` (or MANY where another program stands or several come at once). Returns which
        entries met another program of the same operation, and the program that each entry met."""
        old = table.index_select(0, index)
        table[index] = mine
        now = table.index_select(0, index)
        together = now != mine
        shared = together | ((old != 0) & (old != mine))
        if bool(shared.any()):
            table[index[shared]] = MANY
        return together, now

    def before_write(self, buffer: Buffer, index: Tensor, mine: Tensor, where: str, same: Same) -> None:
        """Looks, before a store is done, for programs that were there first; ``same`` says whether chosen entries
        already hold what is stored."""
        other = buffer.table("writer").index_select(0, index)
        bad = (other != 0) & (other != mine)
        if bool(bad.any()):
            self.race("write/write", where, buffer, index[bad], mine[bad], other[bad], same(bad))
        self.clash("read/write", where, buffer, "reader", index, mine)
        self.clash("atomic/write", where, buffer, "atomic", index, mine)

    def after_write(self, buffer: Buffer, index: Tensor, mine: Tensor, where: str, same: Same) -> None:
        """Tracks a store that has been done, and programs that met in it."""
        together, winner = self.stamp(buffer.table("writer"), index, mine)
        if bool(together.any()):
            at = index[together]
            self.race("write/write", where, buffer, at, mine[together], winner[together], same(together))
        buffer.table("count").index_add_(0, index, torch.ones(1, dtype=torch.int32).expand(len(index)))

    # -- results
    def writes(self) -> dict[str, Writes]:
        """By argument name; arguments that share a storage share the record."""
        made = {
            b.number: Writes(*(b.table(t) for t in ("count", "writer", "atomic"))) for b in self.buffers if b.tracked
        }
        return {n: made[b.number] for b in self.buffers if b.tracked for n in b.names}

    def undefineds(self) -> list[Undefined]:
        return [Undefined(kind, where, count, message) for (kind, where, message), count in self.undefined.items()]  # type: ignore[arg-type]

    def undefined_value(self, kind: str, where: str, count: int, message: str = "") -> None:
        key = (kind, where, message)
        self.undefined[key] = self.undefined.get(key, 0) + count


def masked_off(domain: Domain, t: Type, shape: tuple[int, ...], where: str) -> Any:
    """What a load without ``other`` gives where it is masked off: undefined, but zero for a domain that says so."""
    if not getattr(domain, "masked_zero", False):
        return poison(domain, t, shape, where)
    if t.is_float:
        return domain.constant(0.0, Type(t.elem), where).expand(shape)
    return torch.zeros(shape, dtype=int_dtype(t.elem))


def poison(domain: Domain, t: Type, shape: tuple[int, ...], where: str) -> Any:
    """Undefined values: the domain's own for floats, a conspicuous pattern for integers."""
    if t.is_float:
        return domain.poison(t, shape, where)
    pattern = {"i1": 1, "i8": 0x5A, "i16": 0x5A5A, "i32": 0x5A5A5A5A}.get(t.elem, 0x5A5A5A5A5A5A5A5A)
    return torch.full(shape, pattern, dtype=int_dtype(t.elem))
