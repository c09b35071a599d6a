"""Folded scale: where values are scaled before exponentials, the scale takes log2(e) in and ``exp`` becomes ``exp2``, so
that one multiplication an element is saved.

``s = dot * scale; p = tl.exp(s - m)`` → ``s = dot * (scale * log2(e)); p = tl.exp2(s - m)``, for all that depends on s.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ._python import Module, TritonSkill, assigned, tl
from ._skill import Found, Refusal, Site

LOG2E = "1.4426950408889634"
KEPT = ("max", "maximum", "where", "minimum", "min", "expand_dims", "broadcast_to", "reshape", "trans")


class Exp2(TritonSkill):
    name = "t-exp2"
    what = "exp of scaled values becomes exp2, with log2(e) folded into the scale"
    holds = "a value times a scalar parameter or number, of which only maxima, differences and exponentials are taken"
    keeps = "each exponential up to a relative error that grows with the size of the scaled values"
    source = "Dao et al., FlashAttention, 2022 (exp2 with folded scale)"
    example = ("scaled_softmax.py", "scaled_triton.py")

    def look(self, module: Module, function: ast.FunctionDef) -> Iterator[Found]:
        for name, scale in _scaled(function):
            scope = _Scope(module, function, name)
            if not scope.sinks and not scope.trouble:
                continue
            if scope.trouble:
                yield Refusal(scope.line, scope.trouble)
                continue
            edits = [(*module.span(scale), f"({module.src(scale)} * {LOG2E})")]
            edits += [(*module.span(c.func), ast.unparse(c.func) + "2") for c in scope.sinks]
            yield Site(scale.lineno, f"log2(e) folded into '{module.src(scale)}'", module.edit(*edits))


def _scaled(function: ast.FunctionDef) -> Iterator[tuple[str, ast.expr]]:
    """``(v, scale)`` for each ``v = E * scale`` and ``v *= scale`` with a scalar parameter or a number."""
    scalars = {a.arg for a in function.args.args if not a.arg.endswith("_ptr")} - _pointers(function)
    for n in ast.walk(function):
        if isinstance(n, ast.AugAssign) and isinstance(n.op, ast.Mult) and isinstance(n.target, ast.Name):
            if _scalar(n.value, scalars):
                yield n.target.id, n.value
        elif isinstance(n, ast.Assign) and isinstance(n.value, ast.BinOp) and isinstance(n.value.op, ast.Mult):
            target = n.targets[0]
            for side in (n.value.right, n.value.left):
                if isinstance(target, ast.Name) and _scalar(side, scalars):
                    yield target.id, side
                    break


def _scalar(node: ast.expr, scalars: set[str]) -> bool:
    return (isinstance(node, ast.Name) and node.id in scalars) or (
        isinstance(node, ast.Constant) and isinstance(node.value, float))  # fmt: skip


def _pointers(function: ast.FunctionDef) -> set[str]:
    from .t_evict import base

    return {base(function, c.args[0]) for c in ast.walk(function)
            if isinstance(c, ast.Call) and tl(c.func) in ("load", "store") and c.args}  # fmt: skip


class _Scope:
    """All names that carry the scale, the exponentials that take it away, and the first use that is neither."""

    def __init__(self, module: Module, function: ast.FunctionDef, name: str):
        self.module, self.function = module, function
        self.names, self.sinks = {name}, []  # type: tuple[set[str], list[ast.Call]]
        self.trouble, self.line = "", 0
        self._first = name
        while self._grow():
            pass
        self._judge()

    def _grow(self) -> bool:
        """Names that are given a scaled value join, and names that one is compared with or taken from: if they turn out
        to be something else, that is the trouble."""
        before = len(self.names)
        for n in ast.walk(self.function):
            if isinstance(n, ast.Assign) and isinstance(n.targets[0], ast.Name) and self.scaled(n.value):
                self.names.add(n.targets[0].id)
            parts = _parts(n)
            if any(map(self.scaled, parts)):
                self.names |= {p.id for p in map(_bare, parts) if isinstance(p, ast.Name)}
        return len(self.names) > before

    def scaled(self, node: ast.expr) -> bool:
        """Whether an expression is in scaled units: names of it, their maxima and differences, and minus infinity."""
        match node:
            case ast.Name(id=name):
                return name in self.names
            case ast.Subscript(value=inner):
                return self.scaled(inner)
            case ast.BinOp(left=a, op=ast.Sub(), right=b):
                return self.scaled(a) and self.scaled(b)
            case ast.Call(func=f, args=args) if tl(f) in KEPT:
                given = args[1:] if tl(f) == "where" else args[: 2 if tl(f) in ("maximum", "minimum") else 1]
                return any(map(self.scaled, given)) and all(self.scaled(a) or fixed(a) for a in given)
        return False

    def _judge(self) -> None:
        parents = {c: n for n in ast.walk(self.function) for c in ast.iter_child_nodes(n)}
        for name in self.names:
            given = assigned(self.function, name)
            if not given:
                return self._refuse(self.function, f"'{name}' is not scaled and is put beside what is")
            for s in given:
                if not self._lawful(s, name):
                    return self._refuse(s, f"'{name}' is also given a value that is not scaled")
        for n in ast.walk(self.function):
            if isinstance(n, ast.Name) and n.id in self.names and isinstance(n.ctx, ast.Load):
                self._use(n, parents)

    def _lawful(self, s: ast.stmt, name: str) -> bool:
        if isinstance(s, ast.Assign) and (self.scaled(s.value) or fixed(s.value)):
            return True
        own = [a for a in _scaled(self.function) if a[0] == name]
        scales = any(n is a[1] for a in own for n in ast.walk(s))
        if name == self._first and (scales or self._before(s)):
            return len(own) == 1
        return False

    def _before(self, s: ast.stmt) -> bool:
        """``v = …`` right before ``v *= scale`` in the same block: not scaled yet."""
        for n in ast.walk(self.function):
            for block in (getattr(n, "body", []), getattr(n, "orelse", [])):
                if isinstance(block, list) and s in block:
                    after = block[block.index(s) + 1 :][:1]
                    return (
                        bool(after)
                        and isinstance(after[0], ast.AugAssign)
                        and ast.unparse(after[0].target) == self._first
                    )
        return False

    def _use(self, node: ast.expr, parents: dict[ast.AST, ast.AST]) -> None:
        """Follow one use outward until it is given to a name, taken by exp, or something else."""
        here: ast.AST = node
        while True:
            up = parents[here]
            if isinstance(up, ast.Call) and tl(up.func) == "exp":
                if up not in self.sinks:
                    self.sinks.append(up)
                return
            if isinstance(up, ast.Assign):
                return
            if isinstance(up, ast.AugAssign) and isinstance(up.target, ast.Name) and up.target.id == self._first:
                return
            if not (isinstance(up, ast.expr) and self.scaled(up)):
                return self._refuse(
                    node, f"'{ast.unparse(node)}' carries the scale and is used in '{ast.unparse(up)[:60]}'"
                )
            here = up

    def _refuse(self, node: ast.AST, words: str) -> None:
        if not self.trouble:
            self.trouble, self.line = words, getattr(node, "lineno", 0)


def _parts(node: ast.AST) -> list[ast.expr]:
    """What must be in the same units: both sides of a difference, the arguments of a maximum, both cases of a where."""
    match node:
        case ast.BinOp(left=a, op=ast.Sub(), right=b):
            return [a, b]
        case ast.Call(func=f, args=args) if tl(f) in ("maximum", "minimum"):
            return args[:2]
        case ast.Call(func=f, args=args) if tl(f) == "where":
            return args[1:3]
    return []


def _bare(node: ast.expr) -> ast.expr:
    while isinstance(node, ast.Subscript):
        node = node.value
    return node


def fixed(node: ast.expr) -> bool:
    """Minus infinity, and zero tiles less infinity: the same in any units."""
    text = ast.unparse(node).replace("'", '"')
    if text in ('-float("inf")', 'float("-inf")', '-tl.constexpr(float("inf"))'):
        return True
    match node:
        case ast.BinOp(left=ast.Call(func=f), op=ast.Sub(), right=ast.Call()) if tl(f) == "zeros":
            return ast.unparse(node.right).replace("'", '"') == 'float("inf")'
        case ast.Call(func=f, args=[_, value, *_]) if tl(f) == "full":
            return fixed(value)
    return False


SKILL = Exp2()
