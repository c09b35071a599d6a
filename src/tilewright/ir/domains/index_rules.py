"""Rules of the index domain: operations on integers, truth values and pointers. An operation without a rule that touches
no memory gives an unknown value (``index_walk.py``)."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import z3

from ..program import Op, Type
from ..values import nbytes
from . import index
from .index import AX, OPAQUE, Flag, Num, Spot, choose, compare, conj, disj, inverse, made, moved, num, whole

Rule = Callable[..., Any]
RULES: dict[str, Rule] = {}


def rule(*names: str) -> Callable[[Rule], Rule]:
    """Registers a rule: ``(walker, op, *operands) -> value``; None says that the result is unknown."""

    def register(fn: Rule) -> Rule:
        RULES.update(dict.fromkeys(names, fn))
        return fn

    return register


@rule("arith.constant")
def constant(w: Any, op: Op) -> Any:
    if op.type.is_float:
        return OPAQUE
    found = re.findall(r"true|false|-?\d+", op.attrs["value"])
    if op.type.elem == "i1":
        return Flag(found[0] == "true") if len(set(found)) == 1 else None
    numbers = [int(f) for f in found]
    if op.attrs["value"].startswith(("0x", '"')) or not numbers:
        return None
    if len(set(numbers)) == 1:
        return num(numbers[0])
    return w.unknown(op.type, op.loc, num(min(numbers)), num(max(numbers)))


def ints(*args: Any) -> bool:
    return all(isinstance(a, Num) for a in args)


@rule("arith.addi", "arith.subi", "arith.muli")
def linear(w: Any, op: Op, a: Any, b: Any) -> Any:
    if isinstance(a, Flag) and isinstance(b, Flag):
        return Flag(conj(a.e, b.e)) if op.name == "arith.muli" else differ(a, b)
    if not ints(a, b):
        return None
    return w.fit({"addi": index.add, "subi": index.sub, "muli": index.mul}[op.name[6:]](a, b), op.type)


def differ(a: Flag, b: Flag) -> Flag:
    if isinstance(a.e, bool):
        return Flag(inverse(b.e) if a.e else b.e)
    return Flag(inverse(a.e) if b.e is True else a.e if b.e is False else z3.Xor(a.e, b.e))


@rule("arith.andi", "arith.ori", "arith.xori")
def logic(w: Any, op: Op, a: Any, b: Any) -> Any:
    if isinstance(a, Flag) and isinstance(b, Flag):
        return {
            "andi": lambda: Flag(conj(a.e, b.e)),
            "ori": lambda: Flag(disj(a.e, b.e)),
            "xori": lambda: differ(a, b),
        }[op.name[6:]]()
    if not ints(a, b) or a.low < 0 or b.low < 0:
        return None
    if op.name == "arith.andi":
        for x, m in ((a, b), (b, a)):
            if m.fixed and m.low & (m.low + 1) == 0:
                return index.remainder(x, num(m.low + 1))
        return w.unknown(op.type, op.loc, num(0), num(min(a.high, b.high)))
    return w.unknown(op.type, op.loc, num(0), num((1 << max(a.high, b.high).bit_length()) - 1))


@rule("arith.shli", "arith.shrsi", "arith.shrui")
def shift(w: Any, op: Op, a: Any, b: Any) -> Any:
    if not ints(a, b) or not b.fixed or not 0 <= b.low < 63:
        return None
    if op.name == "arith.shli":
        return w.fit(index.mul(a, num(1 << b.low)), op.type)
    if op.name == "arith.shrui" and a.low < 0:
        return None
    return index.floor_div(a, num(1 << b.low))


@rule("arith.divsi", "arith.divui", "arith.floordivsi", "arith.ceildivsi")
def divide(w: Any, op: Op, a: Any, b: Any) -> Any:
    if not ints(a, b):
        return None
    a, b = w.from_zero(a, op.type.shape), w.from_zero(b, op.type.shape, 1)
    if b.low <= 0:
        return None
    if a.low >= 0 and op.name != "arith.ceildivsi":
        return index.floor_div(a, b)
    if op.name == "arith.floordivsi":
        return index.floor_div(a, b)
    up = index.floor_div(index.add(a, index.sub(b, num(1))), b)
    if op.name == "arith.ceildivsi":
        return up
    return None if op.name == "arith.divui" else choose(compare("ge", a, num(0)), index.floor_div(a, b), up)


@rule("arith.remsi", "arith.remui")
def rest(w: Any, op: Op, a: Any, b: Any) -> Any:
    if not ints(a, b):
        return None
    a, b = w.from_zero(a, op.type.shape), w.from_zero(b, op.type.shape, 1)
    if b.low <= 0:
        return None
    if a.low >= 0:
        return index.remainder(a, b)
    quotient = None if op.name == "arith.remui" else divide(w, replace(op, name="arith.divsi"), a, b)
    return quotient and index.sub(a, index.mul(quotient, b))


@rule("arith.maxsi", "arith.maxui")
def larger(w: Any, op: Op, a: Any, b: Any) -> Any:
    if not ints(a, b) or (op.name.endswith("ui") and min(a.low, b.low) < 0):
        return None
    out = choose(compare("ge", a, b), a, b)
    return Num(out.e, max(a.low, b.low), max(a.high, b.high))


@rule("arith.minsi", "arith.minui")
def smaller(w: Any, op: Op, a: Any, b: Any) -> Any:
    if not ints(a, b) or (op.name.endswith("ui") and min(a.low, b.low) < 0):
        return None
    out = choose(compare("le", a, b), a, b)
    return Num(out.e, min(a.low, b.low), min(a.high, b.high))


@rule("arith.extsi", "arith.index_cast", "arith.extui", "arith.index_castui")
def extend(w: Any, op: Op, x: Any) -> Any:
    if isinstance(x, Flag):
        return choose(x.e, num(-1 if op.name == "arith.extsi" else 1), num(0))
    if not ints(x) or (op.name.endswith("ui") and x.low < 0):
        return None
    return w.fit(x, op.type)


@rule("arith.trunci")
def truncate(w: Any, op: Op, x: Any) -> Any:
    if not ints(x):
        return None
    return Flag(whole(x.e) % 2 == 1) if op.type.elem == "i1" else w.fit(x, op.type)


@rule("arith.cmpi")
def cmpi(w: Any, op: Op, a: Any, b: Any) -> Any:
    predicate = op.attrs["words"][0]
    if isinstance(a, Flag) and isinstance(b, Flag) and predicate in ("eq", "ne"):
        return differ(a, b) if predicate == "ne" else Flag(inverse(differ(a, b).e))
    if not ints(a, b) or (predicate[0] == "u" and min(a.low, b.low) < 0):
        return None
    return Flag(compare(predicate if predicate in ("eq", "ne") else predicate[1:], a, b))


@rule("arith.select")
def select(w: Any, op: Op, mask: Any, a: Any, b: Any) -> Any:
    return choose(mask.e, a, b) if isinstance(mask, Flag) and a is not OPAQUE else None


# -- shapes: positions are renamed


@rule("tt.make_range")
def make_range(w: Any, op: Op) -> Num:
    first, last = op.attrs["start"], op.attrs["end"] - 1
    return made(AX[0] + first if first else AX[0], first, last)


@rule("tt.splat", "tt.unsplat")
def splat(w: Any, op: Op, x: Any) -> Any:
    return x


@rule("tt.expand_dims")
def expand_dims(w: Any, op: Op, x: Any) -> Any:
    axis = op.attrs["axis"]
    return moved(x, [(AX[d], AX[d + 1]) for d in range(axis, len(AX) - 1)])


@rule("tt.broadcast")
def broadcast(w: Any, op: Op, x: Any) -> Any:
    source = w.types[op.operands[0]].shape
    return moved(x, [(AX[d], z3.IntVal(0)) for d, n in enumerate(source) if n == 1])


@rule("tt.trans")
def trans(w: Any, op: Op, x: Any) -> Any:
    return moved(x, [(AX[o], AX[i]) for i, o in enumerate(op.attrs["order"])])


@rule("tt.reshape")
def reshape(w: Any, op: Op, x: Any) -> Any:
    source, target = w.types[op.operands[0]].shape, op.type.shape
    at, step = num(0), 1
    for d in reversed(range(len(target))):
        at, step = index.add(at, index.mul(made(AX[d], 0, target[d] - 1), num(step))), step * target[d]
    pairs, step = [], 1
    for d in reversed(range(len(source))):
        digit = index.remainder(index.floor_div(at, num(step)) or at, num(source[d]))
        pairs.append((AX[d], whole(digit.e if digit else 0)))
        step *= source[d]
    return moved(x, pairs)


@rule("tt.split")
def split(w: Any, op: Op, x: Any) -> Any:
    last = AX[len(op.type.shape)]
    return tuple(moved(x, [(last, z3.IntVal(i))]) for i in range(2))


@rule("tt.join")
def join(w: Any, op: Op, a: Any, b: Any) -> Any:
    return choose(AX[len(op.type.shape) - 1] == 0, a, b)


# -- programs and pointers


@rule("tt.get_program_id")
def program_id(w: Any, op: Op) -> Num:
    axis = "xyz".index(op.attrs["words"][0])
    return made(index.PID[axis], 0, max(w.launch.grid[axis].high - 1, 0))


@rule("tt.get_num_programs")
def num_programs(w: Any, op: Op) -> Num:
    return w.launch.grid["xyz".index(op.attrs["words"][0])]


@rule("tt.addptr")
def addptr(w: Any, op: Op, ptr: Any, offset: Any) -> Any:
    if not isinstance(ptr, Spot) or not ints(offset):
        return None
    return Spot(ptr.buf, index.add(ptr.off, offset), ptr.elem)


@rule("tt.bitcast", "arith.bitcast")
def bitcast(w: Any, op: Op, x: Any) -> Any:
    if isinstance(x, Spot) and nbytes(op.type.pointee) == nbytes(x.elem):
        return Spot(x.buf, x.off, op.type.pointee)
    source = w.types[op.operands[0]]
    return x if isinstance(x, Num) and source.elem == op.type.elem else None


@rule("tt.reduce")
def reduce(w: Any, op: Op, *args: Any) -> Any:
    """The least and the greatest of integers stay in their range; other reductions are unknown."""
    names = {o.name for o in op.regions[0].blocks[0].ops} - {"tt.reduce.return"}
    if len(args) != 1 or not ints(args[0]) or names & {"arith.maxsi", "arith.minsi"} != names:
        return None
    return w.unknown(op.type, op.loc, num(args[0].low), num(args[0].high))


@rule("llvm.intr.assume", "tt.print", "tt.assert", "gpu.barrier", "ttg.barrier", "nvvm.barrier0", "ttg.local_barrier")
def nothing(w: Any, op: Op, *args: Any) -> None:
    return None


def scalar(t: Type) -> bool:
    return not t.shape
