"""Sizes: at which dims a kernel is tried, the most telling ones first.

Faults sit at edges: one element, one less or more than a tile, a prime, nothing at all, more programs than a grid
axis holds. Each dim is varied alone, the others small, and then a few joint draws follow. Tile sizes are guessed
twice: powers of two, and the integers that stand in the kernel's source.
"""

from __future__ import annotations

import ast
import math
import operator
import random
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ..errors import TaskError
from ..task.syntax import expression
from ..task.task import TaskSheet, itemsize
from ..task.tensors import Dim, TensorSpec, evaluate

Dims = dict[str, int]

SMALL = 1 << 16
LARGE = 1 << 20
AFFORDABLE = 8 << 20  # bytes of a workload's inputs and outputs
OPERATIONS = 4_000_000_000
GRID_AXIS = 65535
SEVERAL = 9
TELLING = (1, 17, 2, 33, 48, 3, 65, 31, 129, 5, 127, 257, 37)
MORE = (15, 63, 255, 7, 101, 1025, 16, 32, 64, 128, 256, 13, 211, 1023, 509, 512, 1024, 2049, 4097, 4, 8)
FILL = (3, 2, 5, 4, 6, 7, 8, 1, 16, 32, 64, 128)
JOINT = (1, 2, 3, 5, 7, 13, 16, 17, 31, 33, 37, 64, 65, 101, 127, 129, 200, 257)
_COMPARE: dict[type[ast.cmpop], Callable[[int, int], bool]] = {
    ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge, ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}  # fmt: skip


@dataclass(frozen=True)
class Sizing:
    """Dims to try, the dim that was varied (empty: several), and why."""

    dims: Dims
    varied: str = ""
    why: str = ""

    def key(self) -> tuple[tuple[str, int], ...]:
        return tuple(sorted(self.dims.items()))


def holds(condition: str, dims: Mapping[str, int]) -> bool:
    """Whether a constraint over dims is true: ``holds("K % G == 0 and K <= N", {"K": 8, "G": 4, "N": 9})``.

    Allowed: comparisons (chained too) of integer expressions, ``and``, ``or``, ``not``; a bare expression is true
    where it is not 0. Raises TaskError for anything else. A division by zero makes the constraint false.
    """

    def walk(node: ast.expr) -> bool:
        match node:
            case ast.BoolOp(op=ast.And(), values=parts):
                return all(walk(p) for p in parts)
            case ast.BoolOp(op=ast.Or(), values=parts):
                return any(walk(p) for p in parts)
            case ast.UnaryOp(op=ast.Not(), operand=part):
                return not walk(part)
            case ast.Constant(value=bool() as known):
                return known
            case ast.Compare(left=left, ops=ops, comparators=rights):
                terms = [number(left), *(number(r) for r in rights)]
                if unknown := next((o for o in ops if type(o) not in _COMPARE), None):
                    raise TaskError(
                        f"constraint '{condition}' uses {type(unknown).__name__}", remedy="use < <= > >= == !="
                    )
                return all(_COMPARE[type(o)](a, b) for o, a, b in zip(ops, terms, terms[1:], strict=False))
        return number(node) != 0

    def number(node: ast.expr) -> int:
        return evaluate(ast.unparse(node), dims)

    try:
        return walk(expression(condition.strip()))
    except ZeroDivisionError:
        return False
    except SyntaxError as e:
        raise TaskError(f"constraint '{condition}' is not an expression: {e.msg}") from None


def legal(sheet: TaskSheet, dims: Mapping[str, int], *, empty: bool = False) -> bool:
    """Whether the contract's scope has these dims. ``empty``: dims of 0 pass even where a range starts at 1."""
    for name, size in dims.items():
        spec = sheet.dims.get(name)
        if spec is not None and not spec.allows(size) and not (empty and size == 0):
            return False
    if not all(holds(c, dims) for c in sheet.constraints):
        return False
    try:
        return all(n >= 0 for spec in _specs(sheet) for n in spec.sizes(dims))
    except (TaskError, ZeroDivisionError):
        return False


def elements(sheet: TaskSheet, dims: Mapping[str, int]) -> int:
    """Elements of the largest tensor at these dims; the product of all dims where no shape is known."""
    sizes = [math.prod(spec.sizes(dims)) for spec in _specs(sheet)]
    return max(sizes) if sizes else math.prod(dims.values())


def nbytes(sheet: TaskSheet, dims: Mapping[str, int], dtype: str | None = None) -> int:
    """Bytes of all inputs and outputs at these dims."""
    return sum(math.prod(spec.sizes(dims)) * itemsize(dtype or spec.dtypes[0]) for spec in _specs(sheet))


def _specs(sheet: TaskSheet) -> list[TensorSpec]:
    return [*(s for s in sheet.inputs.values() if isinstance(s, TensorSpec)), *(sheet.outputs or {}).values()]


def small(sheet: TaskSheet, start: Mapping[str, int]) -> Dims:
    """Small legal dims, above 1 where possible, near which one dim at a time is varied."""
    dims = dict(start)
    for name in sheet.dims:
        for size in FILL:
            if size < dims.get(name, 0) and legal(sheet, {**dims, name: size}):
                dims[name] = size
                break
    return dims


def near(spec: Dim, size: int) -> int | None:
    """The size itself or the next legal one above it (below, at the end of the range); None if there is none."""
    if spec.sizes is not None:
        return min(spec.sizes, key=lambda s: (abs(s - size), s)) if spec.sizes else None
    up = -(-max(size, spec.low) // spec.multiple_of) * spec.multiple_of
    if up > spec.high:
        up = spec.high // spec.multiple_of * spec.multiple_of
    return up if spec.allows(up) else None


def put(sheet: TaskSheet, base: Mapping[str, int], name: str, size: int) -> Dims | None:
    """``base`` with one dim set; where a constraint forbids that, with one other dim changed along. None if neither."""
    dims = {**base, name: size}
    if legal(sheet, dims):
        return dims
    for other in sheet.dims:
        if other == name:
            continue
        for value in (size, 2 * size, 1, 2, size // 2, size + 1, size - 1, 4, 8, base[other] * 2):
            if value > 0 and legal(sheet, trial := {**dims, other: value}):
                return trial
    return None


def constants(source: str) -> tuple[int, ...]:
    """Integers above 3 in a kernel's source (``1 << 12`` and ``2**12`` too), largest first, at most a dozen."""
    found = {1 << int(n) for n in re.findall(r"\b1\s*<<\s*(\d{1,2})\b", source) if int(n) < 20}
    found |= {1 << int(n) for n in re.findall(r"\b2\s*\*\*\s*(\d{1,2})\b", source) if int(n) < 20}
    found |= {int(n) for n in re.findall(r"(?<![\w.])(?<!e[-+])(\d{1,7})(?![\w.])", source)}
    return tuple(sorted((n for n in found if 3 < n <= LARGE), reverse=True)[:12])


def plan(
    sheet: TaskSheet, start: Mapping[str, int], *, hints: Sequence[int] = (), seed: int = 0, most: int = 64,
    budget: int = SMALL,
) -> list[Sizing]:  # fmt: skip
    """Legal dims within ``budget`` elements a tensor, telling ones first, at most ``most``; ``start`` is not among
    them. ``hints``: sizes that the kernel's source mentions."""
    base = small(sheet, start)
    streams = [list(_alone(sheet, base, name, start.get(name, 0), hints)) for name in sheet.dims]
    joint = list(_joint(sheet, base, start, random.Random(seed), budget))
    first, rest = [s[: len(TELLING)] for s in streams], [s[len(TELLING) :] for s in streams]
    ordered = [*joint[:2], *_interleave(first), *joint[2:8], *_interleave(rest), *joint[8:]]
    return _distinct(sheet, ordered, {**start}, budget)[:most]


def _alone(sheet: TaskSheet, base: Dims, name: str, given: int, hints: Sequence[int]) -> Iterator[Sizing]:
    """One dim varied: edges first, then sizes around the given one and around what the source mentions, then more."""
    edges = [n for h in hints for n in (h + 1, h - 1)]
    wanted = [
        *TELLING[:2],
        *edges[:2],
        *TELLING[2:4],
        given - 1,
        given + 1,
        *edges[2:4],
        *TELLING[4:],
        *edges[4:],
        given * 2,
        given // 2,
        *MORE,
        *hints,
    ]
    seen: set[int] = set()
    for size in wanted:
        legal_size = near(sheet.dims[name], size) if size > 0 else None
        if not legal_size or legal_size in seen:
            continue
        seen.add(legal_size)
        dims = put(sheet, base, name, legal_size)
        if dims is not None:
            yield Sizing(dims, name, f"{name}={legal_size}")


def _joint(sheet: TaskSheet, base: Dims, start: Mapping[str, int], rng: random.Random, budget: int) -> Iterator[Sizing]:
    """All dims at once: the given ones in another order, all 1, then random draws."""
    names = sorted(sheet.dims, key=lambda n: -start.get(n, 1))
    if len(names) < 2:
        return
    for sizes, why in (((65, 37, 17, 5, 3), "odd sizes"), ((129, 65, 33, 3, 2), "just off tiles")):
        yield from _lawful(sheet, {n: sizes[min(i, 4)] for i, n in enumerate(names)}, base, why, budget)
    yield from _lawful(sheet, dict.fromkeys(names, 1), base, "all 1", budget)
    turned = [min(start.get(n, 1), 300) for n in reversed(sheet.dims)]
    yield from _lawful(sheet, dict(zip(sheet.dims, turned, strict=True)), base, "sizes exchanged", budget)
    for _ in range(24):
        yield from _lawful(sheet, {n: rng.choice(JOINT) for n in names}, base, "random sizes", budget)


def _lawful(sheet: TaskSheet, wanted: Dims, base: Dims, why: str, budget: int) -> Iterator[Sizing]:
    """``wanted`` brought into the contract's scope and the budget, dim by dim."""
    dims = dict(base)
    for name, size in wanted.items():
        legal_size = near(sheet.dims[name], size)
        moved = None if legal_size is None else put(sheet, dims, name, legal_size)
        dims = dims if moved is None else moved
    for _ in range(40):
        if elements(sheet, dims) <= budget:
            break
        name = max(dims, key=lambda n: dims[n])
        legal_size = near(sheet.dims[name], dims[name] // 2) if name in sheet.dims else None
        moved = None if legal_size is None or legal_size >= dims[name] else put(sheet, dims, name, legal_size)
        if moved is None:
            return
        dims = moved
    if legal(sheet, dims):
        yield Sizing(dims, "", why)


def _interleave(streams: Iterable[list[Sizing]]) -> Iterator[Sizing]:
    lists = [list(s) for s in streams]
    for i in range(max((len(s) for s in lists), default=0)):
        yield from (s[i] for s in lists if i < len(s))


def _distinct(sheet: TaskSheet, sizings: Iterable[Sizing], start: Dims, budget: int) -> list[Sizing]:
    seen = {Sizing(start).key()}
    kept = []
    for s in sizings:
        if s.key() not in seen and 0 < elements(sheet, s.dims) <= budget:
            seen.add(s.key())
            kept.append(s)
    return kept


def longest(sheet: TaskSheet, base: Mapping[str, int], name: str, budget: int) -> Dims | None:
    """``base`` with one dim as large as ``budget`` elements a tensor allow, preferably odd; None if it can't grow."""
    spec = sheet.dims[name]
    low, high = base[name], min(spec.high, budget)
    if spec.sizes is not None:
        fits = [s for s in spec.sizes if low < s and elements(sheet, {**base, name: s}) <= budget]
        return put(sheet, base, name, max(fits)) if fits else None
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if elements(sheet, {**base, name: middle}) <= budget else (low, middle - 1)
    size = (low - 1 + low % 2) // spec.multiple_of * spec.multiple_of
    return put(sheet, base, name, size) if size > base[name] and spec.allows(size) else None


def least(sheet: TaskSheet, start: Mapping[str, int]) -> Dims:
    """The smallest legal dims above 0, one dim after another."""
    dims = dict(start)
    for name, spec in sheet.dims.items():
        for size in sorted(spec.sizes) if spec.sizes else (1, 2, 3, 4, 8, 16, max(spec.low, 1), spec.multiple_of):
            if 0 < size < dims.get(name, 0) and legal(sheet, {**dims, name: size}):
                dims[name] = size
                break
    return dims


def reduced(sheet: TaskSheet, start: Mapping[str, int], most: int) -> Dims:
    """``start`` with its longest dims halved, as long as that is lawful, until a call touches at most ``most`` elements:
    a power of two stays one, so that what holds at a multiple of the tile is still tried at one."""
    dims = dict(start)
    while elements(sheet, dims) > most:
        for name in sorted(dims, key=lambda n: -dims[n]):
            half = {**dims, name: dims[name] // 2}
            if dims[name] >= 2 and legal(sheet, half):
                dims = half
                break
        else:
            return dims
    return dims


def affordable(sheet: TaskSheet, dims: Mapping[str, int], dtype: str | None) -> bool:
    """Whether a check can run these dims dozens of times: by the bytes of a call, and by the operations that the task
    states. Where no shape is known, the reader of the problem has seen to that."""
    if not any(s.shape for s in _specs(sheet)):
        return True
    if nbytes(sheet, dims, dtype) > AFFORDABLE:
        return False
    names = {**dims, "itemsize": itemsize(dtype or "float32")}
    return sheet.work is None or not sheet.work.flops or evaluate(sheet.work.flops, names) <= OPERATIONS


def cheaper(sheet: TaskSheet, start: Mapping[str, int], dtype: str | None) -> Dims:
    """``start`` with its longest dims halved until a check can afford it."""
    most = LARGE << 3
    while not affordable(sheet, dims := reduced(sheet, start, most), dtype) and most > 1:
        most //= 2
    return dims


def extremes(sheet: TaskSheet, start: Mapping[str, int]) -> list[Sizing]:
    """Each dim long, the others as small as they get: 16 Ki, and above the 65535 programs that a grid axis holds.

    Each again with several of the others where that fits: of one row alone, a maximum that stops at half its length
    is right half the time.
    """
    base = least(sheet, start)
    found = []
    for size, above, why in ((16_411, 4096, "long"), (GRID_AXIS + 2, GRID_AXIS, "more than a grid axis holds")):
        for name in sheet.dims:
            legal_size = near(sheet.dims[name], size)
            dims = put(sheet, base, name, legal_size) if legal_size and legal_size > above else None
            if dims is not None:
                found.append(Sizing(dims, name, f"{name}={legal_size}, {why}"))
                several = {n: near(sheet.dims[n], max(s, SEVERAL)) or s for n, s in dims.items()}
                if legal(sheet, several):
                    found.append(Sizing(several, name, f"{name}={legal_size}, {why}"))
    return _distinct(sheet, found, dict(start), LARGE)


def empties(sheet: TaskSheet, start: Mapping[str, int], *, beyond: bool) -> list[Sizing]:
    """Each dim 0 alone, and all together. ``beyond``: also dims whose range starts at 1 (nobody said that 0 is
    excluded)."""
    base = small(sheet, start)
    names = [n for n, d in sheet.dims.items() if beyond or d.allows(0)]
    wanted = [Sizing({**base, n: 0}, n, f"{n}=0") for n in names]
    if len(names) > 1:
        wanted.append(Sizing({**base, **dict.fromkeys(names, 0)}, "", "all empty"))
    return [s for s in wanted if legal(sheet, s.dims, empty=beyond)]
