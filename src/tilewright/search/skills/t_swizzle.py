"""Grouped order: programs of a grid with two axes take their tiles in groups of rows, so that neighbours in time share
what they read in the second-level cache.

``i = tl.program_id(0); j = tl.program_id(1)`` → the same pair, permuted by ``tl.swizzle2d`` with a declared group size.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ._python import Module, TritonSkill, calls, program_ids
from ._skill import Found, Refusal, Site


class Swizzle(TritonSkill):
    name = "t-swizzle"
    what = "tiles of a grid with two axes are taken in groups of rows"
    holds = "both places are asked for once, by plain assignments at the top; any order of programs is as good, since the " \
        "new one is a permutation"  # fmt: skip
    source = "Triton tutorial on matrix multiplication, L2 cache optimisations"
    example = ("matmul.py", "matmul_triton.py")

    def look(self, module: Module, function: ast.FunctionDef) -> Iterator[Found]:
        ids = program_ids(function)
        if len(ids) < 2:
            return
        if sorted(axis for _, axis in ids) != [0, 1]:
            yield Refusal(function.lineno, "the function asks for other places than one of each of two axes")
            return
        if bad := calls(function, "num_programs", "swizzle2d"):
            yield Refusal(bad[0].lineno, f"the function orders its tiles itself ({ast.unparse(bad[0].func)})")
            return
        made = {axis: _name(function, call) for call, axis in ids}
        if None in made.values():
            yield Refusal(function.lineno, "a place is asked for inside a larger expression")
            return
        (i, first), (j, second) = made[0], made[1]  # type: ignore[misc]
        last = max(first, second, key=lambda s: s.lineno)
        if not _together(function, first, second):
            yield Refusal(function.lineno, "the places are not asked for one right after the other")
            return
        yield Site(last.lineno, f"({i}, {j}) in groups", self._grouped(module, i, j, last))

    def _grouped(self, module: Module, i: str, j: str, last: ast.stmt) -> str:
        group, linear = module.fresh("GROUP"), module.fresh("linear")
        pad, end = " " * last.col_offset, module.lines_of(last, last)[1]
        rows, columns = "tl.num_programs(0)", "tl.num_programs(1)"
        row, column = f"{linear} // {columns}", f"{linear} % {columns}"
        text = (f"{pad}{linear} = {j} * {rows} + {i}\n"
                f"{pad}{i}, {j} = tl.swizzle2d({row}, {column}, {rows}, {columns}, {group})\n")  # fmt: skip
        top = module.top()
        return module.edit((top, top, f"{group} = tl.constexpr(8)  # knob: 1 2 4 8 16\n\n\n"), (end, end, text))


def _name(function: ast.FunctionDef, call: ast.Call) -> tuple[str, ast.stmt] | None:
    for s in function.body:
        if isinstance(s, ast.Assign) and s.value is call and isinstance(s.targets[0], ast.Name):
            return s.targets[0].id, s
    return None


def _together(function: ast.FunctionDef, a: ast.stmt, b: ast.stmt) -> bool:
    return abs(function.body.index(a) - function.body.index(b)) == 1


SKILL = Swizzle()
