"""Split-K: the sum over the inner dimension is shared by several programs, whose parts the host adds up.

``for k in range(0, K, BK): s += …; tl.store(c + at, s)`` → program (i, j, part) takes every SPLIT_K-th block and stores its
own sum; ``c = parts.sum(0)``. Worth it where the grid of tiles is smaller than the card.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from ._python import Module, TritonSkill, added, assigned, calls, program_ids, tl
from ._skill import Found, Refusal, Site
from .t_epilogue import _empty
from .t_evict import base
from .t_unmask import _range


@dataclass(frozen=True)
class Sum:
    """``total`` is added up in ``loop`` (variable, bound, step) and stored once."""

    total: str
    loop: ast.For
    head: tuple[str, str, str]
    store: ast.Call


class SplitK(TritonSkill):
    name = "t-split-k"
    what = "the sum over the inner dimension is split among programs, and the host adds up their parts"
    holds = (
        "one loop from 0 by a block, of which nothing but one float32 sum goes on to the next round; that sum alone is "
        "stored, once, to a fresh tensor; one launch over a plain grid of one or two axes"
    )
    keeps = "each sum up to rounding: the same terms in another order, parts in float32"
    source = (
        "fixed split: Osama et al., Stream-K, 2023; Hoque et al., a Triton kernel with SplitK work decomposition, 2024"
    )
    example = ("matmul.py", "matmul_triton.py")

    def look(self, module: Module, function: ast.FunctionDef) -> Iterator[Found]:
        for loop in [s for s in function.body if isinstance(s, ast.For)]:
            totals = [n for n in _added(loop) if _zeros(function, n)]
            if not totals:
                continue
            found = _sum(module, function, loop, totals)
            if isinstance(found, str):
                yield Refusal(loop.lineno, found)
                continue
            host = _host(module, function, found)
            if isinstance(host, str):
                yield Refusal(found.store.lineno, host)
            else:
                yield Site(
                    loop.lineno,
                    f"'{found.total}' split along '{found.head[1]}'",
                    _split(module, function, found, *host),
                )


def _added(loop: ast.For) -> list[str]:
    """Names that statements of a loop add to."""
    return [s.target.id for s in loop.body if isinstance(s, ast.AugAssign) and isinstance(s.op, ast.Add)
            and isinstance(s.target, ast.Name)]  # fmt: skip


def _zeros(function: ast.FunctionDef, name: str) -> bool:
    """Whether a name begins as zeros in float32, at the top of the function."""
    made = [s for s in function.body if isinstance(s, ast.Assign) and ast.unparse(s.targets[0]) == name]
    return bool(made) and isinstance(made[0].value, ast.Call) and tl(made[0].value.func) == "zeros" and "float32" in (
        ast.unparse(made[0].value))  # fmt: skip


def _sum(module: Module, function: ast.FunctionDef, loop: ast.For, totals: list[str]) -> Sum | str:
    head = _range(module, loop)
    if isinstance(head, str):
        return head
    if len(totals) != 1 or len(assigned(function, totals[0])) != 2:
        return f"'{totals[0]}' is not the only sum, or is added to in more than one place"
    total = totals[0]
    if carried := _carried(loop, total):
        return carried
    after = function.body[function.body.index(loop) + 1 :]
    inside = {
        n.id for s in loop.body for n in ast.walk(s) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
    } - {total}
    used = [n for s in after for n in ast.walk(s) if isinstance(n, ast.Name)]
    if left := sorted({n.id for n in used} & (inside | {head[0]})):
        return f"'{left[0]}' is used after the loop"
    stores = calls(function, "store")
    if len(stores) != 1 or calls(function, "atomic_add", "atomic_max", "atomic_cas", "atomic_xchg", "debug_barrier"):
        return "the function stores more than its sum"
    if not (len(stores[0].args) > 1 and _bare(stores[0].args[1], total)) or sum(n.id == total for n in used) != 1:
        return f"more than '{total}' itself is stored: what is done to a sum can't be done to its parts"
    return Sum(total, loop, head, stores[0])


def _bare(value: ast.expr, total: str) -> bool:
    """``total``, or ``total.to(POINTER.dtype.element_ty)``, which is float32 for parts."""
    match value:
        case ast.Name(id=name):
            return name == total
        case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="to"), args=[kind], keywords=[]):
            return name == total and ast.unparse(kind).endswith(".dtype.element_ty")
    return False


def _carried(loop: ast.For, total: str) -> str:
    """Why rounds of the loop depend on each other by more than the sum; empty where they don't."""
    stored = {n.id for s in loop.body for n in ast.walk(s) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    known: set[str] = set()
    for s in loop.body:
        read = {n.id for n in ast.walk(s) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
        if old := sorted(read & (stored - known)):
            return f"'{old[0]}' goes from one round of the loop to the next"
        if isinstance(s, ast.AugAssign) and ast.unparse(s.target) == total:
            continue
        if not (isinstance(s, ast.Assign) and len(s.targets) == 1 and isinstance(s.targets[0], ast.Name)):
            return f"the loop does more than assign and add: '{ast.unparse(s).splitlines()[0][:40]}'"
        known.add(s.targets[0].id)
    return ""


def _host(module: Module, function: ast.FunctionDef, found: Sum) -> tuple[str, ast.Call, ast.Expr] | str:
    """The tensor that the sum goes to, the launch, and its statement."""
    axes = [axis for _, axis in program_ids(function)]
    launches = module.launches(function.name)
    if len(launches) != 1 or any("autotune" in ast.unparse(d) for d in function.decorator_list):
        return f"'{function.name}' is launched at {len(launches)} places, or is configured elsewhere"
    launch, grid = launches[0], launches[0].func.slice  # type: ignore[attr-defined]
    if not isinstance(grid, ast.Tuple) or not 1 <= len(grid.elts) <= 2 or not set(axes) <= set(range(len(grid.elts))):
        return "its grid is not a plain one of one or two axes"
    pointer = base(function, found.store.args[0])
    names = [a.arg for a in function.args.args]
    if pointer not in names or any(base(function, c.args[0]) in (pointer, "") for c in calls(function, "load")):
        return "which tensor is stored to is not clear, or it is read as well"
    place = names.index(pointer)
    given = launch.args[place] if place < len(launch.args) else None
    if not isinstance(given, ast.Name):
        return f"'{pointer}' is not given by name"
    hosts = [
        n for n in ast.walk(module.tree) if isinstance(n, ast.FunctionDef) and any(c is launch for c in ast.walk(n))
    ]
    statement = (
        next((s for s in ast.walk(hosts[0]) if isinstance(s, ast.Expr) and s.value is launch), None) if hosts else None
    )
    if statement is None or not _fresh(hosts[0], given.id):
        return f"'{given.id}' is not a fresh, empty tensor that is returned and used for nothing else"
    return given.id, launch, statement


def _fresh(host: ast.FunctionDef, name: str) -> bool:
    """Made by ``torch.empty``, given to the launch, returned; else only asked about its size and kind."""
    uses = [n for n in ast.walk(host) if isinstance(n, ast.Name) and n.id == name]
    asked = [
        n
        for n in ast.walk(host)
        if isinstance(n, ast.Attribute) and ast.unparse(n.value) == name
        if n.attr in ("numel", "stride", "shape", "dtype", "device")
    ]
    returned = [n for n in ast.walk(host) if isinstance(n, ast.Return) and n.value and ast.unparse(n.value) == name]
    return _empty(host, name) and bool(returned) and len(uses) == 2 + len(asked) + len(returned)


def _split(module: Module, function: ast.FunctionDef, s: Sum, name: str, launch: ast.Call, statement: ast.Expr) -> str:
    assert isinstance(launch.func, ast.Subscript)
    assert isinstance(launch.func.slice, ast.Tuple)
    grid = launch.func.slice
    axis = len(grid.elts)
    splits, part, size, parts = (module.fresh(n) for n in ("SPLIT_K", "part", f"{name}_size", f"{name}_parts"))
    (_, bound, step), pad = s.head, " " * s.loop.col_offset
    blocks = f"range({part} * {step}, {bound}, tl.num_programs({axis}) * {step})"
    pointer = s.store.args[0]
    last = (function.args.defaults or function.args.args)[-1]
    at = module.span(last)[1]
    top, start = module.top(), module.lines_of(s.loop, s.loop)[0]
    g = module.span(grid.elts[-1])[1]
    here, end = module.lines_of(statement, statement)
    indent = " " * statement.col_offset
    given = next(a for a in launch.args if isinstance(a, ast.Name) and a.id == name)
    shape = f"({splits}, *{name}.shape), dtype=torch.float32, device={name}.device"
    return module.edit(
        (top, top, f"{splits} = 4  # knob: 1 2 4 8 16\n\n\n"),
        (at, at, f", {size}=1" if function.args.defaults else f", {size}"),
        (start, start, f"{pad}{part} = tl.program_id({axis})\n"), (*module.span(s.loop.iter), blocks),
        (*module.span(pointer), f"{module.src(pointer)} + {part}.to(tl.int64) * {size}"),
        (here, here, f"{indent}{parts} = torch.empty({shape})\n"), (g, g, f", {splits}"), (*module.span(given), parts),
        added(module, launch, f"{size}={name}.numel()"), (end, end, f"{indent}{name} = {parts}.sum(0).to({name}.dtype)\n"),
    )  # fmt: skip


SKILL = SplitK()
