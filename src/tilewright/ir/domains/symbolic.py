"""Symbolic domain: each float is a term over the inputs' elements, beside its value in real arithmetic.

Nothing is written out while a program runs: one operation on a tensor adds one block of nodes, whatever the tensor's
size, and a float is the number of its node. What one output element depends on is read off backwards afterwards
(``needed``), by the enclosures of ``ball.py`` and the words of ``symbolic_words.py``. Comparisons, integers made from
data and orders come out as they do for the values at hand; they are kept, since a term holds only where they do.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ...errors import Unsupported
from ..program import Type
from ..values import INTS, bits
from . import magic
from .base import Domain
from .constants import number
from .machine import FUNCTIONS, Machine, compare, to_int

LARGEST_SLICE = 200_000


@dataclass(slots=True)
class Terms:
    """``ids`` are node numbers, ``near`` the values in float64, both of one shape. ``x`` and ``e`` are for rules that
    ask the field for constants and logarithms: there are none here."""

    ids: Tensor
    near: Tensor

    x = None
    e = None

    @property
    def shape(self) -> torch.Size:
        return self.near.shape

    @property
    def requires_grad(self) -> bool:
        return False

    def numel(self) -> int:
        return self.near.numel()

    def map(self, fn: Callable[[Tensor], Tensor]) -> Terms:
        return Terms(fn(self.ids), fn(self.near))

    @staticmethod
    def combine(fn: Callable[[Sequence[Tensor]], Tensor], values: Sequence[Terms]) -> Terms:
        return Terms(fn([v.ids for v in values]), fn([v.near for v in values]))


@dataclass(frozen=True, slots=True)
class Node:
    """One term. ``op``: a function of the domain, ``dot`` (pairs of factors, then what they are added to), ``input``,
    ``literal`` (as written), ``given`` (a number made from integers or kept data), ``undefined``. ``name`` and
    ``index`` are an input's; ``value`` the float64 value; ``elem`` a literal's type."""

    op: str
    args: tuple[int, ...]
    value: float
    where: str
    name: str = ""
    index: tuple[int, ...] = ()
    elem: str = ""


@dataclass(slots=True)
class _Block:
    """Nodes ``base`` … of one operation. ``args``: node numbers, broadcast to the block's shape (whole operands for a
    dot)."""

    base: int
    op: str
    where: str
    args: tuple[Tensor, ...]
    near: Tensor
    name: str = ""
    elem: str = ""


@dataclass(frozen=True, slots=True)
class Choice:
    """A comparison (``predicate``, sides, outcome), a conversion to integer (``integer``) or an order (``order``)."""

    kind: str
    where: str
    a: Terms
    b: Terms | None = None
    out: Tensor | None = None


class Symbolic(Domain):
    """Terms of one run or of several that are to be compared. ``choices``: what depended on values."""

    name = "symbolic"

    def __init__(self) -> None:
        super().__init__()
        self.blocks: list[_Block] = []
        self.bases: list[int] = []
        self.size = 0
        self.choices: list[Choice] = []

    # -- nodes
    def block(self, op: str, where: str, args: Sequence[Tensor], near: Tensor, name: str = "", elem: str = "") -> Terms:
        """One node for each element of ``near``."""
        base, n = self.size, near.numel()
        self.blocks.append(_Block(base, op, where, tuple(args), near.detach(), name, elem))
        self.bases.append(base)
        self.size += n
        return Terms(torch.arange(base, base + n).reshape(near.shape), near.detach())

    def node(self, i: int) -> Node:
        """The term with number ``i``."""
        b = self.blocks[bisect_right(self.bases, i) - 1]
        return _nodes(b, torch.tensor([i - b.base]))[0]

    def needed(self, *roots: int, most: int = LARGEST_SLICE) -> dict[int, Node]:
        """All nodes that ``roots`` depend on, arguments before what uses them. Raises Unsupported beyond ``most`` a
        root."""
        wanted = torch.zeros(self.size, dtype=torch.bool)
        wanted[list(roots)] = True
        parts: list[tuple[_Block, Tensor]] = []
        count = 0
        older = self.blocks[: bisect_right(self.bases, max(roots))]  # arguments are older than what uses them
        for b in reversed(older):
            flat = wanted[b.base : b.base + b.near.numel()].nonzero().reshape(-1)
            if not len(flat):
                continue
            count += len(flat)
            if count > most * len(roots):
                raise Unsupported(f"one element that depends on more than {most} terms")
            parts.append((b, flat))
            for ids in _arguments(b, _places(flat, b.near.shape)):
                wanted[ids.reshape(-1)] = True
        return {
            b.base + i: n for b, flat in reversed(parts) for i, n in zip(flat.tolist(), _nodes(b, flat), strict=True)
        }

    # -- making values
    def input(self, name: str, values: Tensor) -> Terms:
        """An input tensor: its elements are known by name and index."""
        return self.block("input", "", (), values.double(), name)

    def exact(self, values: Tensor) -> Terms:
        """Given floats, exactly."""
        return self.block("given", "", (), values.double())

    def constant(self, value: float, t: Type, where: str) -> Terms:
        near = number(value, t.elem).value if math.isfinite(value) else value
        return self.block("literal", where, (), torch.tensor([near], dtype=torch.float64), repr(value), t.elem)

    def poison(self, t: Type, shape: tuple[int, ...], where: str) -> Terms:
        return self.block("undefined", where, (), torch.full(shape, math.nan, dtype=torch.float64))

    # -- computing
    def apply(self, name: str, t: Type, args: tuple[Any, ...], where: str) -> Terms:
        fn = FUNCTIONS.get(name)
        if fn is None:
            raise Unsupported(f"{name} in the symbolic domain", where=where)
        for i, constant in enumerate(args[::-1] if name in ("add", "sub") else ()):
            small = args[i].near.abs() < magic.limit(name, t.elem, constant.near)
            if bool(small.any()):
                other = self.select(small, self.apply("rint", t, (args[i],), where), args[i])
                args = tuple(other if j == i else a for j, a in enumerate(args))
                break
        near = fn(*[a.near for a in args])
        return self.block(name, where, [a.ids.expand(near.shape) for a in args], near)

    def compare(self, predicate: str, a: Terms, b: Terms, where: str) -> Tensor:
        out = compare(predicate, a.near, b.near)
        self.choices.append(Choice(predicate, where, a, b, out))
        return out

    def classify(self, name: str, a: Terms, where: str) -> Tensor:
        return getattr(torch, name)(a.near)

    def key(self, v: Terms) -> Tensor:
        """A tensor whose order is the order of the values."""
        self.choices.append(Choice("order", "", v))
        return v.near

    def select(self, mask: Tensor, a: Terms, b: Terms) -> Terms:
        return Terms.combine(lambda ts: torch.where(mask, ts[0], ts[1]), [a, b])

    def cast(self, x: Terms, source: Type, target: Type, rounding: str, where: str) -> Terms:
        if bits(target.elem) < bits(source.elem):
            self.ledger.cast(where, source.elem, target.elem, x.numel())
        return x

    def from_int(self, x: Tensor, signed: bool, source: Type, target: Type, where: str) -> Terms:
        return self.exact(Machine().from_int(x, signed, source, Type("f64", target.shape), where))

    def to_int(self, x: Terms, source: Type, target: Type, signed: bool, where: str) -> Tensor:
        self.choices.append(Choice("integer", where, x))
        return to_int(x.near, bits(target.elem), signed).to(INTS[target.elem])

    def dot(self, a: Terms, b: Terms, c: Terms, ta: Type, tb: Type, t: Type, precision: str, where: str) -> Terms:
        near = a.near @ b.near + c.near
        lead = near.shape[:-2]
        sides = [v.ids.expand(*lead, *v.shape[-2:]) for v in (a, b)]
        return self.block("dot", where, [*sides, c.ids.expand(near.shape)], near)

    # -- memory: what is stored replaces the tensors, since blocks may hold views of the old ones
    def take(self, storage: Terms, index: Tensor) -> Terms:
        return storage.map(lambda t: t.index_select(0, index))

    def put(self, storage: Terms, index: Tensor, values: Terms) -> Terms:
        storage.ids, storage.near = storage.ids.clone(), storage.near.clone()
        storage.ids[index], storage.near[index] = values.ids, values.near
        return storage

    def add_at(self, storage: Terms, index: Tensor, values: Terms, t: Type) -> Terms:
        """In order: each round adds at most one value to an element."""
        left = torch.arange(len(index))
        while len(left):
            at = index.index_select(0, left)
            first = _firsts(at)
            chosen = left.index_select(0, first)
            where = index.index_select(0, chosen)
            total = self.apply("add", t, (self.take(storage, where), self.take(values, chosen)), "atomic")
            storage = self.put(storage, where, total)
            keep = torch.ones(len(left), dtype=torch.bool)
            keep[first] = False
            left = left[keep]
        return storage

    def cast_storage(self, storage: Any, elem: str, name: str) -> Terms:
        return self.exact(storage) if isinstance(storage, Tensor) else Terms(storage.ids, storage.near)

    def equal(self, a: Terms, b: Terms) -> Tensor:
        return a.ids == b.ids


def unravel(i: int, shape: torch.Size) -> tuple[int, ...]:
    """Index of element ``i``, last axis fastest."""
    out = []
    for n in reversed(shape):
        out.append(i % n)
        i //= n
    return tuple(reversed(out))


def _places(flat: Tensor, shape: torch.Size) -> tuple[Tensor, ...]:
    """``unravel`` for many at once."""
    out = []
    for n in reversed(shape):
        out.append(flat % n)
        flat = flat // n
    return tuple(reversed(out))


def _arguments(b: _Block, at: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """Node numbers that elements ``at`` of a block are made of: a column an argument (for a dot: its left factors, its
    right ones, and what they are added to)."""
    if b.op != "dot":
        return tuple(a[at] if at else a.reshape(1) for a in b.args)
    left, right, start = b.args
    lead, (i, j) = at[:-2], at[-2:]
    return left[(*lead, i)], right.transpose(-1, -2)[(*lead, j)], start[at]


def _nodes(b: _Block, flat: Tensor) -> list[Node]:
    """The terms at positions ``flat`` of a block."""
    at = _places(flat, b.near.shape)
    near = b.near[at] if at else b.near.reshape(1)
    args, values = [a.tolist() for a in _arguments(b, at)], near.tolist()
    if b.op == "dot":
        pairs = [
            [n for pair in zip(rows, columns, strict=True) for n in pair]
            for rows, columns in zip(*args[:2], strict=True)
        ]
        return [Node("dot", (*p, c), v, b.where) for p, c, v in zip(pairs, args[2], values, strict=True)]
    if b.op == "input":
        places = zip(*(x.tolist() for x in at), strict=True) if at else [()] * len(values)
        return [Node("input", (), v, b.where, b.name, p) for v, p in zip(values, places, strict=True)]
    several = zip(*args, strict=True) if args else [()] * len(values)
    return [Node(b.op, p, v, b.where, b.name, (), b.elem) for v, p in zip(values, several, strict=True)]


def _firsts(index: Tensor) -> Tensor:
    """Positions of the first occurrence of each entry, ascending."""
    order = torch.argsort(index, stable=True)
    ranked = index.index_select(0, order)
    new = torch.ones(len(ranked), dtype=torch.bool)
    new[1:] = ranked[1:] != ranked[:-1]
    return order[new].sort().values
