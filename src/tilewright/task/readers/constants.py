"""The integer constants of a problem file, and the same file with some of them changed.

before: ``N = 2048 * 2`` … ``torch.rand(N, 16)``  →  constants ``N`` (4096) and an unnamed 16
after ``substitute(tree, {"N": 100})``: ``N = 100`` … ``torch.rand(N, 16)``

Which constants: module-level ``name = integers``, elements of module-level tuples, and in ``get_inputs`` /
``get_init_inputs`` the literals, local names and defaults. Not: literals that multiply a name (``2 * N``), indices,
``dim=``/``axis=`` arguments, zero and negative numbers; nor anything inside ``Model``, which a kernel copies.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

PLACES = ("get_inputs", "get_init_inputs", "example_inputs")
_NOT_SIZES = frozenset({"dim", "axis", "dtype", "device", "seed", "ndim", "dims", "start_dim", "end_dim"})
_NOT_SIZE_CALLS = frozenset({
    "manual_seed", "seed", "range", "enumerate", "unsqueeze", "squeeze", "transpose", "permute", "softmax", "sum",
    "mean", "cumsum", "triu", "tril", "getattr", "print",
})  # fmt: skip


@dataclass(frozen=True)
class Constant:
    """One constant. ``key`` identifies it; ``name`` is what the author called it, empty for a bare literal."""

    key: str
    value: int
    line: int
    name: str = ""
    spots: tuple[tuple[int, int], ...] = field(default=(), repr=False)


def find(tree: ast.Module, places: tuple[str, ...] = PLACES) -> dict[str, Constant]:
    """All constants of a parsed problem file, in order of appearance."""
    found: dict[str, Constant] = {}

    def add(node: ast.expr, name: str) -> None:
        value = literal(node)
        if value is None or value <= 0:
            return
        key = name or f"line{node.lineno}_{node.col_offset}"
        if key in found:
            key = f"{key}@{node.lineno}"
        found[key] = Constant(key, value, node.lineno, name, ((node.lineno, node.col_offset),))

    for statement in tree.body:
        if isinstance(statement, ast.Assign | ast.AnnAssign):
            for node, name in _assigned(statement):
                add(node, name)
        elif isinstance(statement, ast.FunctionDef) and statement.name in places:
            for node, name in _in_function(statement):
                add(node, name)
    return found


def literal(node: ast.expr | None) -> int | None:
    """Value of an expression made of integer literals only: ``2048 * 2``."""
    match node:
        case ast.Constant(value=int() as v) if not isinstance(v, bool):
            return v
        case ast.BinOp(left=a, op=ast.Mult() | ast.Add() | ast.Sub() | ast.FloorDiv() | ast.Pow() | ast.LShift() as op,
                       right=b):  # fmt: skip
            left, right = literal(a), literal(b)
            if left is None or right is None or (isinstance(op, ast.FloorDiv) and right == 0) or right > 1 << 40:
                return None
            table = {ast.Mult: left * right, ast.Add: left + right, ast.Sub: left - right}
            if type(op) in table:
                return table[type(op)]
            if isinstance(op, ast.FloorDiv):
                return left // right
            return None if not 0 <= right < 64 else (left**right if isinstance(op, ast.Pow) else left << right)
    return None


def _assigned(statement: ast.Assign | ast.AnnAssign) -> Iterator[tuple[ast.expr, str]]:
    """Constant expressions on the right of an assignment, each with its name."""
    targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
    value = statement.value
    for target in targets:
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
            for t, v in zip(target.elts, value.elts, strict=True):
                yield from _named(v, t.id if isinstance(t, ast.Name) else "")
            return
    names = [t.id for t in targets if isinstance(t, ast.Name)]
    if names and value is not None:
        yield from _named(value, names[0])


def _named(value: ast.expr, name: str) -> Iterator[tuple[ast.expr, str]]:
    if literal(value) is not None:
        yield value, name
    elif isinstance(value, ast.Tuple | ast.List):
        for i, element in enumerate(value.elts):
            # A lone 1 inside a tuple is there to broadcast; it is no size that its author named.
            own = f"{name}_{i}" if name and literal(element) != 1 else ""
            yield from _named(element, own)


def _in_function(function: ast.FunctionDef) -> Iterator[tuple[ast.expr, str]]:
    """Defaults, local constants and literals in argument position."""
    args = function.args.args
    for arg, default in zip(args[len(args) - len(function.args.defaults) :], function.args.defaults, strict=True):
        if literal(default) is not None:
            yield default, arg.arg
    for statement in function.body:
        if isinstance(statement, ast.Assign) and not isinstance(statement.value, ast.Call):
            pairs = list(_assigned(statement))
            if pairs:
                yield from pairs
                continue
        yield from _literals(statement)


def _literals(node: ast.AST) -> Iterator[tuple[ast.expr, str]]:
    """Literals that may be sizes, outermost first."""
    if isinstance(node, ast.expr) and literal(node) is not None:
        yield node, ""
        return
    if isinstance(node, ast.Subscript):
        yield from _literals(node.value)
        return
    if isinstance(node, ast.BinOp | ast.UnaryOp | ast.Compare):
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr) and literal(child) is None:
                yield from _literals(child)
        return
    if isinstance(node, ast.keyword) and node.arg in _NOT_SIZES:
        return
    if isinstance(node, ast.Call):
        called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        yield from _literals(node.func)
        for part in [*node.args, *node.keywords]:
            if called not in _NOT_SIZE_CALLS or isinstance(part, ast.Call):
                yield from _literals(part)
        return
    for child in ast.iter_child_nodes(node):
        yield from _literals(child)


def substitute(tree: ast.Module, constants: Mapping[str, Constant], values: Mapping[str, int]) -> ast.Module:
    """A copy of ``tree`` with the constants named in ``values`` replaced. Lines stay as they are."""
    spots = {spot: values[k] for k, c in constants.items() if k in values for spot in c.spots}
    if not spots:
        return tree

    class Swap(ast.NodeTransformer):
        def visit(self, node: ast.AST) -> ast.AST:
            if isinstance(node, ast.expr) and (node.lineno, node.col_offset) in spots and literal(node) is not None:
                return ast.copy_location(ast.Constant(spots[node.lineno, node.col_offset]), node)
            return self.generic_visit(node)

    # Only the statements that change are copied: this runs for every trial.
    lines = {line for line, _ in spots}
    body: list[Any] = []
    for statement in tree.body:
        changes = any(statement.lineno <= n <= (statement.end_lineno or n) for n in lines)
        body.append(Swap().visit(copy.deepcopy(statement)) if changes else statement)
    return ast.Module(body, tree.type_ignores)
