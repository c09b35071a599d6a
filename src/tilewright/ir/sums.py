"""In which dtype a kernel adds: dots, reductions, scans, atomics, sums that a loop carries. Read off the program."""

from __future__ import annotations

from .program import Op, Program, walk
from .values import WIDTH

_ADDS = ("arith.addf", "arith.subf", "math.fma")
_SHAPES = (
    "arith.extf",
    "tt.reshape",
    "tt.broadcast",
    "tt.expand_dims",
    "tt.splat",
    "tt.trans",
    "ttg.convert_layout",
    "tt.fp_to_fp",
)


def sums(program: Program) -> list[tuple[str, str, str]]:
    """(source line, kind, element type) of each sum; a loop's sum counts as the narrowest type that an addend was
    rounded to on its way in."""
    made = {r: op for op in program.ops() for r in op.results}
    found: dict[tuple[str, str, str], None] = {}
    for op in program.ops():
        if op.name == "tt.dot":
            found[op.loc, "dot", op.type.elem] = None
        elif op.name in ("tt.reduce", "tt.scan") and any(o.name in _ADDS for r in op.regions for o in walk(r)):
            types = [t.elem for t in op.types if t.is_float]
            found.update({(op.loc, op.name.removeprefix("tt."), t): None for t in types[:1]})
        elif op.name == "tt.atomic_rmw" and "fadd" in op.attrs.get("words", ()):
            found[op.loc, "atomic", op.type.elem] = None
        elif op.name == "scf.for":
            found.update(dict.fromkeys(_carried(op, made)))
    return list(found)


def _carried(op: Op, made: dict[int, Op]) -> list[tuple[str, str, str]]:
    """Sums that a loop carries: each turn's value is the last one's plus something."""
    body = op.regions[0].blocks[0]
    out = []
    for carried, last in zip(body.args[1:], body.ops[-1].operands, strict=False):
        end = made.get(last)
        if end is None or end.name not in _ADDS or not end.type.is_float or carried not in end.operands:
            continue
        elems = [end.type.elem, *(_narrowest(o, made) for o in end.operands if o != carried)]
        out.append((end.loc, "loop", min((e for e in elems if e), key=lambda e: WIDTH.get(e, 64))))
    return out


def _narrowest(value: int, made: dict[int, Op]) -> str:
    """The type that a value was rounded to on its way here, through conversions and changes of shape; empty if none."""
    while (op := made.get(value)) is not None and op.operands:
        if op.name == "arith.truncf":
            return op.type.elem
        if op.name not in _SHAPES:
            return ""
        value = op.operands[0]
    return ""
