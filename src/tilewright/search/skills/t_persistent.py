"""Persistent programs: as many programs as the card holds at once are launched, and each takes tile after tile.

``f[(T,)](…)``, ``pid = tl.program_id(0)`` → ``f[(min(T, PROGRAMS),)](…, tiles=T)``, a loop over tiles in the function.
"""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Iterator

from ._python import Module, TritonSkill, added, calls, program_ids
from ._skill import Found, Refusal, Site


class Persistent(TritonSkill):
    name = "t-persistent"
    what = "few programs take tile after tile in place of one program a tile"
    holds = "a grid of one axis, asked about once at the top of the function; no early return, no atomics, one launch"
    source = "persistent threads: Gupta, Stuart and Owens, 2012"
    example = ("row_softmax.py", "softmax_triton.py")

    def look(self, module: Module, function: ast.FunctionDef) -> Iterator[Found]:
        ids = program_ids(function)
        if not ids:
            return
        if reason := _refused(module, function, ids):
            yield Refusal(function.lineno, reason)
        else:
            yield Site(
                function.lineno, f"'{function.name}' takes tile after tile", _looped(module, function, ids[0][0])
            )


def _refused(module: Module, function: ast.FunctionDef, ids: list[tuple[ast.Call, int]]) -> str:
    if len(ids) != 1 or ids[0][1] != 0:
        return "the function asks for its place more than once, or on another axis"
    if _first(function, ids[0][0]) is None:
        return "its place is asked for inside another statement"
    if any(isinstance(n, ast.Return) for n in ast.walk(function)):
        return "the function returns early"
    if bad := calls(function, "num_programs", "debug_barrier", "atomic_add", "atomic_cas", "atomic_max", "atomic_xchg"):
        return f"the function uses {ast.unparse(bad[0].func)}"
    other = {f.name for f in module.device if f is not function}
    if used := sorted(other & {n.id for n in ast.walk(function) if isinstance(n, ast.Name)}):
        return f"it calls '{used[0]}', which may ask for its place"
    if any(d for d in function.decorator_list if "autotune" in ast.unparse(d) or "heuristics" in ast.unparse(d)):
        return "its launch is configured elsewhere"
    found = module.launches(function.name)
    if len(found) != 1:
        return f"it is launched at {len(found)} places"
    return "" if _tiles(found[0]) is not None else "its grid is not one plain expression"


def _first(function: ast.FunctionDef, call: ast.Call) -> ast.stmt | None:
    """The statement at the top of the function that holds the call, if it is an assignment."""
    for s in function.body:
        if isinstance(s, ast.Assign) and any(n is call for n in ast.walk(s)):
            return s
    return None


def _tiles(launch: ast.Call) -> ast.expr | None:
    assert isinstance(launch.func, ast.Subscript)
    grid = launch.func.slice
    if not isinstance(grid, ast.Tuple | ast.List) or len(grid.elts) != 1:
        return None
    plain = (ast.Name, ast.Constant, ast.BinOp, ast.operator, ast.Attribute, ast.Load, ast.Subscript)
    for n in ast.walk(grid.elts[0]):
        known = isinstance(n, ast.Call) and ast.unparse(n.func) in ("triton.cdiv", "min", "max", "x.numel", "x.stride")
        if not isinstance(n, plain) and not known:
            return None
    return grid.elts[0]


def _looped(module: Module, function: ast.FunctionDef, call: ast.Call) -> str:
    first = _first(function, call)
    assert first is not None
    programs, tiles, tile = (module.fresh(n) for n in ("PROGRAMS", "tiles", "tile"))
    start, end = module.lines_of(first, function.body[-1])
    body = module.text[start:end]
    a, b = (x - start for x in module.span(call))
    pad = " " * first.col_offset
    inner = textwrap.indent(body[:a] + tile + body[b:], "    ", lambda line: bool(line.strip()))
    loop = f"{pad}for {tile} in range(tl.program_id(0), {tiles}, tl.num_programs(0)):\n"
    last = function.args.args[-1]
    at = module.span(last)[1]
    if function.args.defaults:
        at = module.span(function.args.defaults[-1])[1]
    new = f", {tiles}=1" if function.args.defaults else f", {tiles}"
    launch = module.launches(function.name)[0]
    grid = _tiles(launch)
    assert grid is not None
    g0, g1 = module.span(grid)
    return module.edit(
        (module.top(), module.top(), f"{programs} = 264  # knob: 132 264 528 1056\n\n\n"), (at, at, new),
        (start, end, loop + inner), (g0, g1, f"min({module.src(grid)}, {programs})"),
        added(module, launch, f"{tiles}={module.src(grid)}"),
    )  # fmt: skip


SKILL = Persistent()
