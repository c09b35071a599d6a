"""Epilogue: what the host does to each element of a kernel's result is done by the kernel before it stores.

``f[grid](…, y, …); return torch.relu(y)`` → the store of ``y`` stores ``relu``, and ``return y``.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ._python import Module, TritonSkill, calls
from ._skill import Found, Refusal, Site
from .t_evict import base

RELU = ("torch.relu", "torch.nn.functional.relu", "F.relu", "nn.functional.relu")


class Epilogue(TritonSkill):
    name = "t-epilogue"
    what = "relu of a kernel's result is taken by the kernel before it stores"
    holds = (
        "the result is the output of one launch that stores it once and never reads it, and is used for nothing else"
    )
    keeps = "every bit: the value is rounded to the output's type first; NaN stays NaN"
    source = "operator fusion"
    example = ("add_relu.py", "add_triton.py")

    def look(self, module: Module, function: ast.FunctionDef) -> Iterator[Found]:
        found = module.launches(function.name)
        for host in [n for n in ast.walk(module.tree) if isinstance(n, ast.FunctionDef) and n not in module.device]:
            for ret in [n for n in ast.walk(host) if isinstance(n, ast.Return)]:
                name = _relu(ret.value)
                if name and any(c in found for c in ast.walk(host)):
                    yield self._at(module, function, host, ret, name, found)

    def _at(self, module: Module, function: ast.FunctionDef, host: ast.FunctionDef, ret: ast.Return, name: str,
            found: list[ast.Call]) -> Found:  # fmt: skip
        if len(found) != 1:
            return Refusal(ret.lineno, f"'{function.name}' is launched at {len(found)} places")
        given = [i for i, a in enumerate(found[0].args) if isinstance(a, ast.Name) and a.id == name]
        uses = [n for n in ast.walk(host) if isinstance(n, ast.Name) and n.id == name]
        looked = [n for n in ast.walk(host) if isinstance(n, ast.Attribute) and isinstance(n.value, ast.Name)
                  and n.value.id == name and n.attr in ("numel", "stride", "shape", "dtype", "device")]  # fmt: skip
        if len(given) != 1 or len(uses) != 3 + len(looked):
            return Refusal(ret.lineno, f"'{name}' is used for more than the launch and the result")
        if not _empty(host, name):
            return Refusal(ret.lineno, f"'{name}' is not a fresh, empty tensor")
        parameter = function.args.args[given[0]].arg
        stores = [c for c in calls(function, "store") if base(function, c.args[0]) == parameter]
        others = [c for c in calls(function, "load", "atomic_add", "store") if c not in stores
                  and base(function, c.args[0]) in (parameter, "")]  # fmt: skip
        if len(stores) != 1 or others:
            return Refusal(function.lineno, f"'{parameter}' is not stored to exactly once")
        return Site(stores[0].lineno, f"relu before the store of '{parameter}'",
                    self._fused(module, stores[0], ret, parameter, name))  # fmt: skip

    def _fused(self, module: Module, store: ast.Call, ret: ast.Return, parameter: str, name: str) -> str:
        assert ret.value is not None
        value = f"({module.src(store.args[1])}).to({parameter}.dtype.element_ty)"
        return module.edit((*module.span(store.args[1]), f"tl.where({value} < 0, 0.0, {value})"),
                           (*module.span(ret.value), name))  # fmt: skip


def _relu(value: ast.expr | None) -> str:
    """The name whose relu is returned."""
    match value:
        case ast.Call(func=f, args=[ast.Name(id=name)], keywords=[]) if ast.unparse(f) in RELU:
            return name
        case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="relu"), args=[], keywords=[]):
            return name
    return ""


def _empty(host: ast.FunctionDef, name: str) -> bool:
    made = [n for n in ast.walk(host) if isinstance(n, ast.Assign)
            and any(isinstance(t, ast.Name) and t.id == name for t in n.targets)]  # fmt: skip
    return len(made) == 1 and ast.unparse(made[0].value).startswith(("torch.empty(", "torch.empty_like("))


SKILL = Epilogue()
