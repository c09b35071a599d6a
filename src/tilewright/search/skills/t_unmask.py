"""Unmasked tiles: a loop over tiles is split, so that only the last tile, which may be ragged, is loaded under a mask.

``for s in range(0, N, B): … mask=cols < N …`` → the same without the mask up to ``N // B * B``, then with it for the rest.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ._python import Module, TritonSkill, assigned, calls, keyword, without
from ._skill import Found, Refusal, Site


class Unmask(TritonSkill):
    name = "t-unmask"
    what = "whole tiles of a loop are loaded and stored without a mask"
    holds = "the mask says 'start + arange(0, B) < N' and nothing else, in a loop from 0 to N by B"
    source = "loop peeling, index set splitting: Allen and Kennedy, 2001"
    example = ("row_softmax.py", "softmax_triton.py")

    def look(self, module: Module, function: ast.FunctionDef) -> Iterator[Found]:
        for node in ast.walk(function):
            if isinstance(node, ast.For):
                found = self._at(module, function, node)
                if found is not None:
                    yield found

    def _at(self, module: Module, function: ast.FunctionDef, node: ast.For) -> Found | None:
        head = _range(module, node)
        masked = [c for c in calls(node, "load", "store") if keyword(c, "mask") or len(c.args) > 2]
        if not masked:
            return None
        if isinstance(head, str):
            return Refusal(node.lineno, head)
        var, bound, step = head
        tests = {f"{name} < {bound}" for name in _lanes(module, function, node, var, step)}
        tests |= {f"({t})" for t in tests}
        names = {n.targets[0].id for n in node.body if isinstance(n, ast.Assign) and module.src(n.value) in tests
                 and isinstance(n.targets[0], ast.Name)}  # fmt: skip
        edits = []
        for c in masked:
            mask = keyword(c, "mask")
            if mask is None or module.src(mask.value) not in tests | names:
                return Refusal(
                    c.lineno, f"the mask of '{ast.unparse(c.func)}' says more than '{var} + arange < {bound}'"
                )
            edits += without(module, c, "mask", "other")
        if any(len(assigned(function, n)) > 1 for n in names) or _changes(node, {var, bound, step}):
            return Refusal(node.lineno, "a bound or the mask changes inside the loop")
        return Site(node.lineno, f"whole tiles over '{var}' unmasked", self._split(module, node, head, edits))

    def _split(
        self, module: Module, node: ast.For, head: tuple[str, str, str], edits: list[tuple[int, int, str]]
    ) -> str:
        _, bound, step = head
        start, end = module.lines_of(node, node)
        body = module.text[start:end]
        plain = body
        for a, b, new in sorted(edits, reverse=True):
            plain = plain[: a - start] + new + plain[b - start :]
        whole = f"{bound} // {step} * {step}"
        ranged = module.src(node.iter)
        return module.edit((start, end, plain.replace(ranged, f"range(0, {whole}, {step})", 1)
                            + body.replace(ranged, f"range({whole}, {bound}, {step})", 1)))  # fmt: skip


def _range(module: Module, node: ast.For) -> tuple[str, str, str] | str:
    """Variable, bound and step of ``for v in range(0, N, B)`` over names, or why it is none."""
    it = node.iter
    if not (isinstance(it, ast.Call) and ast.unparse(it.func) in ("range", "tl.range") and len(it.args) == 3
            and not it.keywords and isinstance(node.target, ast.Name)):  # fmt: skip
        return "the loop does not run from 0 to a size by a block"
    low, high, step = it.args
    if not (
        isinstance(low, ast.Constant) and low.value == 0 and isinstance(high, ast.Name) and isinstance(step, ast.Name)
    ):
        return f"the loop's bounds are not plain names: {module.src(it)}"
    return node.target.id, high.id, step.id


def _lanes(module: Module, function: ast.FunctionDef, node: ast.For, var: str, step: str) -> set[str]:
    """Names and expressions that are ``var + arange(0, step)``."""
    ranges = {n.targets[0].id for n in ast.walk(function) if isinstance(n, ast.Assign) and isinstance(n.targets[0], ast.Name)
              and _arange(n.value, step) and len(assigned(function, n.targets[0].id)) == 1}  # fmt: skip
    found = set()
    for n in ast.walk(node):
        if isinstance(n, ast.BinOp) and isinstance(n.op, ast.Add):
            sides = [n.left, n.right]
            starts = [s for s in sides if isinstance(s, ast.Name) and s.id == var]
            lanes = [s for s in sides if _arange(s, step) or (isinstance(s, ast.Name) and s.id in ranges)]
            if len(starts) == 1 and len(lanes) == 1:
                found |= {module.src(n), f"({module.src(n)})"}
    once = [s for s in node.body if isinstance(s, ast.Assign) and isinstance(s.targets[0], ast.Name)
            and len(assigned(node, s.targets[0].id)) == 1]  # fmt: skip
    return found | {ast.unparse(s.targets[0]) for s in once if module.src(s.value) in found}


def _arange(node: ast.expr, step: str) -> bool:
    text = ast.unparse(node)
    return text in (f"tl.arange(0, {step})", f"tl.arange(0, {step}).to(tl.int64)")


def _changes(node: ast.For, names: set[str]) -> bool:
    return any(assigned(s, n) for s in node.body for n in names)


SKILL = Unmask()
