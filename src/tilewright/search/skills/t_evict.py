"""Eviction hints: what is read for the last time may leave the cache first; what is read again soon should stay.

``tl.load(p)`` → ``tl.load(p, eviction_policy="evict_first")``. What is computed does not change.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ._python import Module, TritonSkill, added, calls, keyword
from ._skill import Found, Refusal, Site


class Evict(TritonSkill):
    name = "t-evict"
    what = "loads say whether what they read is needed again"
    holds = "loads without a policy; of several of one tensor the last is the last"
    source = "PTX ISA, cache eviction priority hints"
    example = ("row_softmax.py", "softmax_triton.py")

    def look(self, module: Module, function: ast.FunctionDef) -> Iterator[Found]:
        loads = [c for c in calls(function, "load") if c.args]
        if not loads:
            return
        if taken := next((c for c in loads if keyword(c, "eviction_policy")), None):
            yield Refusal(taken.lineno, "a load has its policy already")
            return
        groups: dict[str, list[ast.Call]] = {}
        for c in sorted(loads, key=lambda c: c.lineno):
            groups.setdefault(base(function, c.args[0]), []).append(c)
        if "" in groups:
            yield Refusal(
                groups[""][0].lineno, f"which tensor '{module.src(groups[''][0].args[0])}' points into is not clear"
            )
            return
        edits = []
        for many in groups.values():
            for c in many:
                policy = "evict_first" if c is many[-1] else "evict_last"
                edits.append(added(module, c, f'eviction_policy="{policy}"'))
        yield Site(function.lineno, f"eviction hints on {len(edits)} loads", module.edit(*edits))


def base(function: ast.FunctionDef, pointer: ast.expr) -> str:
    """The parameter that a pointer begins with: the leftmost name of its sums, followed through plain assignments."""
    for _ in range(20):
        while isinstance(pointer, ast.BinOp) and isinstance(pointer.op, ast.Add):
            pointer = pointer.left
        if not isinstance(pointer, ast.Name):
            return ""
        if any(a.arg == pointer.id for a in function.args.args):
            return pointer.id
        found = [n for n in ast.walk(function) if isinstance(n, ast.Assign) and len(n.targets) == 1
                 and isinstance(n.targets[0], ast.Name) and n.targets[0].id == pointer.id]  # fmt: skip
        if not found:
            return ""
        pointer = found[0].value
    return ""


SKILL = Evict()
