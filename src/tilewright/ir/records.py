"""What one launch leaves behind: outputs, access faults, races, who wrote what, rounding ledger."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from torch import Tensor

KEPT = 64


@dataclass(frozen=True)
class Fault:
    """An access out of range. ``offset`` is the first bad element, counted from the start of the argument's storage;
    ``size`` that storage's elements; ``count`` how many elements of this operation were out of range in all;
    ``masked`` says whether the access had a mask (it let the bad element through)."""

    kind: Literal["load", "store", "atomic"]
    where: str
    argument: str
    offset: int
    size: int
    program: tuple[int, int, int]
    count: int
    masked: bool

    def __str__(self) -> str:
        side = "before the start" if self.offset < 0 else "beyond the end"
        through = ", let through by the mask" if self.masked else ""
        return (
            f"{self.where}: {self.kind} {side} of '{self.argument}': element {self.offset} of {self.size}, "
            f"program {self.program} ({self.count} elements in all{through})"
        )


@dataclass(frozen=True)
class Race:
    """Two programs of one launch touch the same element and at least one writes. ``same_value`` is true for a
    write/write race in which all writers left equal bits."""

    kind: Literal["write/write", "read/write", "atomic/write", "atomic/read"]
    where: str
    argument: str
    offset: int
    programs: tuple[int, int]
    count: int
    same_value: bool = False

    def __str__(self) -> str:
        return (f"{self.where}: {self.kind} race on '{self.argument}' element {self.offset} between programs "
                f"{self.programs[0]} and {self.programs[1]} ({self.count} elements in all)")  # fmt: skip


@dataclass(frozen=True)
class Uninitialised:
    """A read of memory that nothing had written; ``program`` is the reader's position in launch order."""

    where: str
    argument: str
    offset: int
    program: int
    count: int


@dataclass(frozen=True)
class Undefined:
    """A value that the language leaves undefined and the kernel asked for: a masked load without ``other`` (rightly
    used by many kernels, so no fault in itself), a division by zero, a constant that does not fit the integer type that
    it is cast to, a failed ``tl.device_assert``."""

    kind: Literal["masked load", "integer division by zero", "constant out of range", "assertion"]
    where: str
    count: int
    message: str = ""


@dataclass
class Writes:
    """Per element of one argument's storage: ``count`` stores (int32), ``program`` the last writer's position in
    launch order plus one (0: none, -1: several), ``atomic`` the same for atomics."""

    count: Tensor
    program: Tensor
    atomic: Tensor


@dataclass
class Access:
    """Totals of one load, store or atomic. ``elements`` were asked for, ``active`` of them not masked off;
    ``low`` and ``high`` are the least and greatest element touched, None if none was."""

    kind: str
    where: str
    argument: str
    elem: str
    times: int = 0
    elements: int = 0
    active: int = 0
    low: int | None = None
    high: int | None = None


@dataclass
class Ledger:
    """Roundings and dots, by source line: ``casts[(where, from, to)]`` and ``dots[(where, a, b, acc, precision, K)]``
    count elements. ``constants[(where, name)]`` is the relative error of a literal that stands for a named constant;
    ``assumptions`` are what a domain took for granted, to be shown with any verdict that rests on them."""

    casts: dict[tuple[str, str, str], int] = field(default_factory=dict)
    dots: dict[tuple[str, str, str, str, str, int], int] = field(default_factory=dict)
    constants: dict[tuple[str, str], float] = field(default_factory=dict)
    assumptions: set[tuple[str, str]] = field(default_factory=set)

    def constant(self, where: str, name: str, error: float) -> None:
        self.constants[where, name] = error

    def assume(self, where: str, what: str) -> None:
        self.assumptions.add((where, what))

    def cast(self, where: str, source: str, target: str, count: int) -> None:
        key = (where, source, target)
        self.casts[key] = self.casts.get(key, 0) + count

    def dot(self, where: str, a: str, b: str, acc: str, precision: str, k: int, count: int) -> None:
        key = (where, a, b, acc, precision, k)
        self.dots[key] = self.dots.get(key, 0) + count


@dataclass
class Result:
    """One launch evaluated. ``outputs`` maps each pointer argument's name to its storage after the launch (in the
    machine domain the same tensor that was passed, changed in place). ``sequential`` says that programs ran one after
    the other, because they wait for each other (locks); ``synchronises`` that an atomic's old value is used, by which
    programs may order what they do; ``unreleased`` are the lines of stores that no atomic follows."""

    outputs: dict[str, Any]
    faults: list[Fault]
    races: list[Race]
    uninitialised: list[Uninitialised]
    undefined: list[Undefined]
    writes: dict[str, Writes]
    accesses: list[Access]
    ledger: Ledger
    programs: int
    evaluated: int
    sequential: bool = False
    domain: str = ""
    seconds: float = 0.0
    synchronises: bool = False
    unreleased: tuple[str, ...] = ()

    @property
    def clean(self) -> bool:
        """No access fault, no race, no uninitialised read."""
        return not (self.faults or self.races or self.uninitialised)
