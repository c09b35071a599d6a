"""Python source of Triton kernels as a syntax tree with the place of each node. Rewrites splice text at those places, so
comments and layout stay; a tree that prints itself would gain nothing here, and Python's own parser is always there."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cached_property

from ...task.syntax import parse
from ._skill import Found, Refusal, Skill


class Module:
    """A parsed file."""

    def __init__(self, text: str):
        self.text = text
        self.tree = parse(text)
        self.lines = text.splitlines(keepends=True)
        self._starts = [0]
        for line in self.lines:
            self._starts.append(self._starts[-1] + len(line))

    def at(self, line: int, column: int) -> int:
        """Offset of a place as ``ast`` gives it (columns are bytes)."""
        row = self.lines[line - 1] if line <= len(self.lines) else ""
        return self._starts[line - 1] + len(row.encode()[:column].decode())

    def span(self, node: ast.AST) -> tuple[int, int]:
        n: ast.expr = node  # type: ignore[assignment]
        return self.at(n.lineno, n.col_offset), self.at(n.end_lineno or 0, n.end_col_offset or 0)

    def src(self, node: ast.AST) -> str:
        start, end = self.span(node)
        return self.text[start:end]

    def edit(self, *edits: tuple[int, int, str]) -> str:
        """The text with spans replaced; they must not overlap."""
        text = self.text
        for start, end, new in sorted(edits, reverse=True):
            text = text[:start] + new + text[end:]
        return text

    @cached_property
    def device(self) -> list[ast.FunctionDef]:
        """Functions under ``@triton.jit``."""
        return [f for f in self.tree.body if isinstance(f, ast.FunctionDef)
                and any("jit" in ast.unparse(d) for d in f.decorator_list)]  # fmt: skip

    def launches(self, name: str) -> list[ast.Call]:
        """Calls ``name[grid](…)`` anywhere in the file."""
        return [n for n in ast.walk(self.tree) if isinstance(n, ast.Call) and isinstance(n.func, ast.Subscript)
                and isinstance(n.func.value, ast.Name) and n.func.value.id == name]  # fmt: skip

    def lines_of(self, first: ast.stmt, last: ast.stmt) -> tuple[int, int]:
        """Span of whole lines, from the start of the first to the end of the last with its line break."""
        return self._starts[first.lineno - 1], self._starts[last.end_lineno or 0]

    def fresh(self, name: str) -> str:
        """A name that the file does not use yet."""
        taken = {n.id for n in ast.walk(self.tree) if isinstance(n, ast.Name)}
        taken |= {n.arg for n in ast.walk(self.tree) if isinstance(n, ast.arg)}
        return next(n for n in (name, *(f"{name}_{i}" for i in range(2, 1000))) if n not in taken)

    def top(self) -> int:
        """Where new constants go: before the first function or class (and its decorators)."""
        first = next(n for n in self.tree.body if isinstance(n, ast.FunctionDef | ast.ClassDef))
        line = min([first.lineno, *(d.lineno for d in first.decorator_list)])
        return self._starts[line - 1]


class TritonSkill(Skill):
    """A skill for Triton: writes ``look``."""

    language = "triton"

    def find(self, text: str) -> Iterator[Found]:
        try:
            module = Module(text)
        except (SyntaxError, ValueError, RecursionError) as e:
            yield Refusal(getattr(e, "lineno", 1) or 1, f"the file can't be parsed: {e}")
            return
        for function in module.device:
            yield from self.look(module, function)

    def look(self, module: Module, function: ast.FunctionDef) -> Iterator[Found]:
        raise NotImplementedError


def calls(node: ast.AST, *names: str) -> list[ast.Call]:
    """Calls of ``tl.NAME`` below a node."""
    return [n for n in ast.walk(node) if isinstance(n, ast.Call) and tl(n.func) in names]


def tl(node: ast.AST) -> str:
    """``max`` for ``tl.max`` or ``triton.language.max``; nothing for another name."""
    text = ast.unparse(node) if isinstance(node, ast.Attribute) else ""
    return text.rpartition(".")[2] if text.rpartition(".")[0] in ("tl", "triton.language", "tl.math") else ""


def keyword(call: ast.Call, name: str) -> ast.keyword | None:
    return next((k for k in call.keywords if k.arg == name), None)


def program_ids(function: ast.FunctionDef) -> list[tuple[ast.Call, int]]:
    """Calls of ``tl.program_id`` with their axis; -1 where it is not written out."""
    found = []
    for c in calls(function, "program_id"):
        axis = c.args[0] if c.args else next((k.value for k in c.keywords if k.arg == "axis"), None)
        known = isinstance(axis, ast.Constant) and isinstance(axis.value, int)
        found.append((c, axis.value if known else -1))  # type: ignore[union-attr, arg-type]
    return found


def assigned(function: ast.AST, name: str) -> list[ast.stmt]:
    """Statements that give a name a value."""
    out: list[ast.stmt] = []
    for n in ast.walk(function):
        if isinstance(n, ast.Assign | ast.AugAssign | ast.AnnAssign | ast.For):
            targets = n.targets if isinstance(n, ast.Assign) else [n.target]
            if any(isinstance(x, ast.Name) and x.id == name for t in targets for x in ast.walk(t)):
                out.append(n)
    return out


def added(module: Module, call: ast.Call, text: str) -> tuple[int, int, str]:
    """Edit that gives a call one more keyword argument, after its positional ones: what stands behind may have a line and
    a comment of its own, as declared parameters do."""
    if call.args:
        at = module.span(call.args[-1])[1]
        return at, at, f", {text}"
    at = module.text.index("(", module.span(call.func)[1]) + 1
    return at, at, text + (", " if call.keywords else "")


def without(module: Module, call: ast.Call, *names: str) -> list[tuple[int, int, str]]:
    """Edits that take keyword arguments out of a call."""
    edits = []
    for k in call.keywords:
        if k.arg in names:
            start, end = module.span(k.value)
            start = module.text.rindex(str(k.arg), 0, start)
            comma = module.text.rindex(",", 0, start)
            edits.append((comma, end, ""))
    return edits
