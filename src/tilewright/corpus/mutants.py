"""Mutants: small mechanical changes to the right kernels, each of which the verifier should reject.

Kinds after the mutation corpora of the field (KernelBench-M, "Measuring the Checker", 2026; gpuemu, arXiv 2606.20128):
operator, comparison, constant, mask, stride, dtype, reduction, loop. ``scoring.py`` checks them. A mutant that changes
nothing that can be observed is *equivalent*; those are listed by hand, with the reason, in ``corpus/equivalent.toml``.
"""

from __future__ import annotations

import ast
import contextlib
import copy
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from ..task.syntax import parse

Kind = Literal["operator", "comparison", "constant", "mask", "stride", "dtype", "reduction", "loop"]
Edit = Callable[[ast.AST], None]

SWAPS: dict[type[ast.AST], type[ast.AST]] = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.Div: ast.Mult}
COMPARES: dict[type[ast.AST], type[ast.AST]] = {ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt,
                                                ast.Eq: ast.NotEq, ast.NotEq: ast.Eq}  # fmt: skip
REDUCTIONS = {"sum": "max", "max": "sum", "min": "max", "exp": "exp2", "exp2": "exp", "rsqrt": "sqrt", "maximum": "minimum",
              "minimum": "maximum"}  # fmt: skip


@dataclass(frozen=True)
class Mutant:
    """One changed kernel. ``key`` is stable: file, line and change."""

    kernel: str
    problem: Path
    kind: Kind
    line: int
    change: str
    text: str

    @property
    def key(self) -> str:
        """Identity: in the ledger, in tables, and in the list of equivalent ones."""
        return f"{self.kernel}:{self.line}: {self.change}"


def mutants(kernel: str, problem: Path, text: str) -> list[Mutant]:
    """All mutants of one Python kernel, in the order of its lines."""
    tree = parse(text)
    whole, found = ast.unparse(tree) + "\n", []
    seen: Counter[tuple[int, str]] = Counter()
    for function in _jitted(tree):
        own = ast.unparse(function)
        for node, kind, change, edit in [site for n in ast.walk(function) for site in _at(n)]:
            line = getattr(node, "lineno", 0)
            seen[line, change] += 1
            if seen[line, change] > 1:  # the same words twice on one line
                change = f"{change} ({seen[line, change]})"
            with _edited(node, edit):
                made = whole.replace(own, ast.unparse(function)) if whole.count(own) == 1 else ast.unparse(tree) + "\n"
            found.append(Mutant(kernel, problem, kind, line, change, made))
    return found


def _jitted(tree: ast.Module) -> Iterator[ast.FunctionDef]:
    for function in tree.body:
        if isinstance(function, ast.FunctionDef) and any("jit" in ast.unparse(d) for d in function.decorator_list):
            yield function


@contextlib.contextmanager
def _edited(node: ast.AST, edit: Edit) -> Iterator[None]:
    """The node is edited within; its children are copies there."""
    before = dict(node.__dict__)
    try:
        node.__dict__.update(copy.deepcopy(before))
        edit(node)
        ast.fix_missing_locations(node)
        yield
    finally:
        node.__dict__.clear()
        node.__dict__.update(before)


def _at(node: ast.AST) -> Iterator[tuple[ast.AST, Kind, str, Edit]]:
    match node:
        case ast.BinOp(op=op) if type(op) in SWAPS:
            if "stride" in ast.unparse(node) and isinstance(op, ast.Mult):
                yield node, "stride", f"drop the stride in '{ast.unparse(node)}'", _drop_stride
            else:
                yield (
                    node,
                    "operator",
                    f"{type(op).__name__} for {SWAPS[type(op)].__name__} in '{ast.unparse(node)}'",
                    _swap,
                )
        case ast.Compare(ops=[op]) if type(op) in COMPARES:
            yield node, "comparison", f"{COMPARES[type(op)].__name__} in '{ast.unparse(node)}'", _compare
        case ast.BinOp(op=ast.BitAnd()):
            yield node, "mask", f"only the left of '{ast.unparse(node)}'", _left
        case ast.Call(func=ast.Attribute(attr=name), keywords=keywords):
            if name in REDUCTIONS:
                yield node, "reduction", f"{REDUCTIONS[name]} for {name} in '{ast.unparse(node)}'", _reduction
            if name in ("load", "store") and any(k.arg == "mask" for k in keywords):
                yield node, "mask", f"no mask in '{ast.unparse(node)}'", _unmask
            if any(k.arg == "other" for k in keywords):
                yield node, "constant", f"other=1 in '{ast.unparse(node)}'", _other
        case ast.Attribute(attr="float32", value=ast.Name(id="tl")):
            yield node, "dtype", "float16 for float32", _narrow
        case ast.Call(func=ast.Name(id="range"), args=[_, _, *_]):
            yield node, "loop", f"one turn less in '{ast.unparse(node)}'", _shorter


def _swap(n: Any) -> None:
    n.op = SWAPS[type(n.op)]()


def _drop_stride(n: Any) -> None:
    side = "right" if "stride" in ast.unparse(n.right) else "left"
    setattr(n, side, ast.Constant(1))


def _compare(n: Any) -> None:
    n.ops = [COMPARES[type(n.ops[0])]()]


def _left(n: Any) -> None:
    n.right = copy.deepcopy(n.left)


def _reduction(n: Any) -> None:
    n.func.attr = REDUCTIONS[n.func.attr]


def _unmask(n: Any) -> None:
    n.keywords = [k for k in n.keywords if k.arg not in ("mask", "other")]


def _other(n: Any) -> None:
    next(k for k in n.keywords if k.arg == "other").value = ast.Constant(1)


def _narrow(n: Any) -> None:
    n.attr = "float16"


def _shorter(n: Any) -> None:
    n.args[1] = ast.BinOp(n.args[1], ast.Sub(), ast.Constant(1))
