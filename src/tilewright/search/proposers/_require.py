"""Constraints between parameters: comparisons of arithmetic over their names, and nothing else (no calls but min, max)."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ...errors import KernelError
from ..tree import Scalar

BINARY: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod,
}  # fmt: skip
COMPARE: dict[type, Callable[[Any, Any], bool]] = {
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}  # fmt: skip
CALLS: dict[str, Callable[..., Any]] = {"min": min, "max": max}


@dataclass(frozen=True)
class Require:
    """One constraint, as written."""

    text: str
    tree: ast.expr

    @staticmethod
    def read(text: str, known: set[str], where: str) -> Require:
        """Raises KernelError (file:line) for what is no constraint over the ``known`` names. ``&&``, ``||`` are read."""
        plain = re.sub(r"!(?!=)", " not ", text.replace("&&", " and ").replace("||", " or ")).strip()
        try:
            tree = ast.parse(plain, mode="eval").body
            names = _names(tree)
        except (SyntaxError, ValueError) as e:
            raise KernelError(f"'{text}' is no constraint: {getattr(e, 'msg', e)}", where=where,
                              remedy="write comparisons of + - * // % over declared knobs") from None  # fmt: skip
        if missing := sorted(names - known):
            raise KernelError(f"'{missing[0]}' in 'require: {text}' is no declared knob", where=where,
                              remedy=f"declared are {', '.join(sorted(known)) or 'none'}")  # fmt: skip
        return Require(text, tree)

    def holds(self, values: Mapping[str, Scalar]) -> bool:
        """Division by zero does not hold."""
        try:
            return bool(_value(self.tree, values))
        except (ZeroDivisionError, TypeError):
            return False


def _names(node: ast.expr) -> set[str]:
    """Names in an expression. Raises ValueError for anything that is no arithmetic."""
    match node:
        case ast.Name(id=name):
            return {name}
        case ast.Constant(value=int() | float() | str()):
            return set()
        case ast.BinOp(left=a, op=op, right=b) if type(op) in BINARY:
            return _names(a) | _names(b)
        case ast.UnaryOp(op=ast.USub() | ast.Not(), operand=a):
            return _names(a)
        case ast.BoolOp(values=many):
            return set().union(*(_names(v) for v in many))
        case ast.Compare(left=a, ops=ops, comparators=rest) if all(type(o) in COMPARE for o in ops):
            return _names(a).union(*(_names(r) for r in rest))
        case ast.Call(func=ast.Name(id=f), args=args, keywords=[]) if f in CALLS and args:
            return set().union(*(_names(a) for a in args))
    raise ValueError(f"'{ast.unparse(node)}' is not allowed here")


def _value(node: ast.expr, values: Mapping[str, Scalar]) -> Any:
    match node:
        case ast.Name(id=name):
            return values[name]
        case ast.Constant(value=v):
            return v
        case ast.BinOp(left=a, op=op, right=b):
            return BINARY[type(op)](_value(a, values), _value(b, values))
        case ast.UnaryOp(op=op, operand=a):
            return not _value(a, values) if isinstance(op, ast.Not) else -_value(a, values)
        case ast.BoolOp(op=op, values=many):
            kind = all if isinstance(op, ast.And) else any
            return kind(_value(v, values) for v in many)
        case ast.Compare(left=a, ops=ops, comparators=rest):
            items = [_value(x, values) for x in (a, *rest)]
            return all(COMPARE[type(o)](x, y) for o, x, y in zip(ops, items, items[1:], strict=False))
        case ast.Call(func=ast.Name(id=f), args=args):
            return CALLS[f](*(_value(a, values) for a in args))
    raise ValueError(ast.unparse(node))
