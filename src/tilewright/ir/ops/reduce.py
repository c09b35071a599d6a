"""Reductions and scans with the kernel's own combining region.

Declared order. A reduction is a halving tree: element i meets element i + n/2, then n/4, … (for a region that is one
commutative operation); other regions meet neighbours (2i, 2i + 1), which keeps the order of the operands. A scan
doubles its reach each step (Hillis & Steele, Data parallel algorithms, 1986). Both ask associativity of the region, as
the language does.
"""

from __future__ import annotations

from typing import Any

import torch

from ..program import Op
from ..values import struct, struct_n
from . import rule

_COMMUTATIVE = {"arith.addf", "arith.addi", "arith.mulf", "arith.muli", "arith.maxnumf", "arith.minnumf",
                "arith.maximumf", "arith.minimumf", "arith.maxsi", "arith.minsi", "arith.maxui", "arith.minui",
                "arith.andi", "arith.ori", "arith.xori"}  # fmt: skip


def _last(x: Any, axis: int) -> Any:
    """Value with tile axis ``axis`` moved to the end."""
    return struct(x, lambda t: t.movedim(axis + 1, -1))


def _flat(x: Any) -> Any:
    return struct(x, lambda t: t.reshape(-1))


def _combine(ev: Any, op: Op, left: list[Any], right: list[Any]) -> list[Any]:
    """The region on two groups of values of one shape."""
    shape = left[0].shape
    body = op.regions[0]
    simple = all(not o.regions and o.name != "tt.call" for o in body.blocks[0].ops)
    if simple:
        return list(ev.apply(body, [*left, *right], None))
    repeat = shape.numel() // shape[0]
    out = ev.apply(body, [_flat(v) for v in (*left, *right)], repeat)
    return [struct(v, lambda t: t.expand(shape.numel()).reshape(shape)) for v in out]


@rule("tt.reduce")
def reduce(ev: Any, op: Op, *args: Any) -> Any:
    values = _alike([_last(x, op.attrs["axis"]) for x in args])
    ops = op.regions[0].blocks[0].ops
    halves = len(ops) == 2 and ops[0].name in _COMMUTATIVE
    while (n := values[0].shape[-1]) > 1:
        odd = _cut(values, slice(n - 1, n)) if n % 2 else None
        even = n - n % 2
        if halves:
            left, right = _cut(values, slice(0, even // 2)), _cut(values, slice(even // 2, even))
        else:
            left, right = _cut(values, slice(0, even, 2)), _cut(values, slice(1, even, 2))
        values = _combine(ev, op, left, right)
        if odd is not None:
            values = _join(values, odd)
    return _result([struct(v, lambda t: t.reshape(t.shape[:-1])) for v in values])


def _cut(values: list[Any], part: slice) -> list[Any]:
    """A part of each value's last axis."""
    return [struct(v, lambda t: t[..., part]) for v in values]


def _join(left: list[Any], right: list[Any]) -> list[Any]:
    """Values joined along the last axis."""
    return [struct_n(pair, lambda ts: torch.cat(list(ts), -1)) for pair in zip(left, right, strict=True)]


def _result(values: list[Any]) -> Any:
    return values[0] if len(values) == 1 else tuple(values)


def _alike(values: list[Any]) -> list[Any]:
    """All with the same number of lanes."""
    n = max(v.shape[0] for v in values)
    return [struct(v, lambda t: t.expand(n, *t.shape[1:])) for v in values]


@rule("tt.scan")
def scan(ev: Any, op: Op, *args: Any) -> Any:
    axis, reverse = op.attrs["axis"], bool(op.attrs.get("reverse", False))
    values = _alike([_last(x, axis) for x in args])
    if reverse:
        values = [struct(v, lambda t: t.flip(-1)) for v in values]
    n, reach = values[0].shape[-1], 1
    while reach < n:
        done = _combine(ev, op, _cut(values, slice(0, n - reach)), _cut(values, slice(reach, n)))
        values = _join(_cut(values, slice(0, reach)), done)
        reach *= 2
    if reverse:
        values = [struct(v, lambda t: t.flip(-1)) for v in values]
    return _result([struct(v, lambda t: t.movedim(-1, axis + 1)) for v in values])


@rule("tt.map_elementwise")
def map_elementwise(ev: Any, op: Op, *args: Any) -> Any:
    """The region on each element, ``pack`` neighbours at a time."""
    pack = int(op.attrs.get("pack", 1))
    values = _alike(list(args))
    shape = values[0].shape
    groups = [struct(v, lambda t: t.reshape(-1, pack)) for v in values]
    inputs = [_column(v, i) for v in groups for i in range(pack)]
    out = ev.apply(op.regions[0], inputs, shape.numel() // pack // shape[0])
    results = []
    count = shape.numel() // pack
    for r in range(len(op.results)):
        parts = [struct(v, lambda t: t.expand(count)) for v in out[r * pack : (r + 1) * pack]]
        results.append(struct_n(parts, lambda ts: torch.stack(list(ts), -1).reshape(shape)))
    return _result(results)


def _column(x: Any, i: int) -> Any:
    return struct(x, lambda t: t[:, i])
