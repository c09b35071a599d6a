"""Device functions from source files, without running the files.

A launch names its function by file and name. Only what device code can use is executed from that file: imports of
Triton, math and torch, jitted functions, plain constants. Decorators other than ``jit`` are dropped: tuning and
heuristics have done their work when a launch is recorded.
"""

from __future__ import annotations

import ast
import hashlib
import importlib
import linecache
import os
import time
import types
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

from ...errors import Unsupported

IMPORTABLE = {"triton", "math", "torch", "typing", "functools", "__future__", "numpy"}


class DeviceSource:
    """``given``: absolute path to text, for the candidate's own files; others are read from disk."""

    def __init__(self, given: dict[str, str]):
        self.given = {str(Path(p).resolve()): t for p, t in given.items()}
        self.modules: dict[str, types.ModuleType] = {}
        self.opened = time.time()

    def read(self, path: str) -> str:
        """Text of a file: the parent's, else the disk's, if it lay there before the candidate ran."""
        if path in self.given:
            return self.given[path]
        if os.stat(path).st_ctime >= self.opened:
            raise forged("a launched function stands in a file that was written after the kernel was loaded", path)
        return Path(path).read_text()

    def function(self, file: dict[str, str], qualname: str, claimed: dict[str, Any]) -> Any:
        """The jitted function ``qualname`` of ``file``. Raises Unsupported if the file changed, or has no such one."""
        path = file["path"]
        text = self.read(path)
        if hashlib.sha256(text.encode()).hexdigest() != file["sha256"]:
            raise forged(f"the launched function '{qualname}' does not come from the file that was given", path)
        module = self.modules.get(path) or self._load(path, text, claimed)
        found = module.__dict__.get(qualname.rpartition(".")[2])
        if found is None or not hasattr(found, "run"):
            raise forged(f"no jitted function '{qualname}' stands at the top level of the file", path)
        return found

    def _load(self, path: str, text: str, claimed: dict[str, Any]) -> types.ModuleType:
        module = types.ModuleType(Path(path).stem)
        module.__file__ = path
        linecache.cache[path] = (len(text), None, text.splitlines(keepends=True), path)
        self.modules[path] = module
        for node in ast.parse(text, filename=path).body:
            self._statement(module, node, path)
        self._fill(module, claimed)
        return module

    def _statement(self, module: types.ModuleType, node: ast.stmt, path: str) -> None:
        match node:
            case ast.Import(names=names):
                if all(a.name.split(".")[0] in IMPORTABLE for a in names):
                    self._run(module, node, path)
            case ast.ImportFrom(module=name, level=level):
                self._import_from(module, node, name or "", level, path)
            case ast.FunctionDef(decorator_list=decorators) if any(_is_jit(d) for d in decorators):
                kept = next(d for d in decorators if _is_jit(d))
                node.decorator_list = [_bare(kept)]
                _disarm(node)
                self._run(module, node, path)
            case ast.Assign() | ast.AnnAssign() if _is_plain(node.value) and _binds_names(node):
                try:
                    self._run(module, node, path)
                except Exception:  # a constant that needs what was left out: the launch that uses it will say so
                    return

    def _import_from(self, module: types.ModuleType, node: ast.ImportFrom, name: str, level: int, path: str) -> None:
        if level == 0 and name.split(".")[0] in IMPORTABLE:
            try:
                self._run(module, node, path)
            except ImportError:
                return
            return
        other = _find(path, name, level)
        if other is None:
            return
        loaded = self.modules.get(other) or self._load(other, self.read(other), {})
        for a in node.names:
            if a.name in loaded.__dict__:
                module.__dict__[a.asname or a.name] = loaded.__dict__[a.name]

    def _run(self, module: types.ModuleType, node: ast.stmt, path: str) -> None:
        exec(compile(ast.Module([node], []), path, "exec"), module.__dict__)

    def _fill(self, module: types.ModuleType, claimed: dict[str, Any]) -> None:
        """Plain constants that the file computes in a way that is not executed here: the launch states their value. A
        false value makes another kernel of it, and its results are judged like any other's."""
        for name, value in claimed.items():
            if name in module.__dict__:
                continue
            ((kind, body),) = value.items()
            if kind == "=":
                module.__dict__[name] = body
            elif kind == "float":
                module.__dict__[name] = float.fromhex(body) if "0x" in body else float(body)
            elif kind == "tl.dtype":
                module.__dict__[name] = tl.dtype(body)


def _is_jit(d: ast.expr) -> bool:
    text = ast.unparse(d).split("(")[0]
    return text in ("jit", "triton.jit", "triton.runtime.jit", "tl.jit")


def forged(what: str, path: str) -> Unsupported:
    """A launch that is not what it says it is."""
    error = Unsupported(what, where=path)
    error.tilewright_kind = "forged"  # type: ignore[attr-defined]
    return error


def _bare(decorator: ast.expr) -> ast.expr:
    """``jit(...)`` without arguments that act."""
    if isinstance(decorator, ast.Call):
        decorator.keywords = [k for k in decorator.keywords if _is_plain(k.value)]
        decorator.args = [a for a in decorator.args if _is_plain(a)]
    return decorator


def _disarm(node: ast.FunctionDef) -> None:
    """Drop what a definition would run: defaults and annotations that are more than names and constants."""
    a = node.args
    node.returns = None
    for p in (*a.posonlyargs, *a.args, *a.kwonlyargs):
        p.annotation = p.annotation if _is_plain(p.annotation) else None
    a.defaults = [d if _is_plain(d) else ast.copy_location(ast.Constant(None), d) for d in a.defaults]
    a.kw_defaults = [
        d if d is None or _is_plain(d) else ast.copy_location(ast.Constant(None), d) for d in a.kw_defaults
    ]


def _binds_names(node: ast.Assign | ast.AnnAssign) -> bool:
    """Whether only plain names of the module are bound: nothing of another module is changed."""
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    flat = [e for t in targets for e in (t.elts if isinstance(t, ast.Tuple) else [t])]
    return all(isinstance(t, ast.Name) for t in flat)


CALLABLE = {"int", "float", "bool", "min", "max", "tl.constexpr", "triton.language.constexpr", "constexpr",
            "triton.next_power_of_2", "triton.cdiv", "tl.cdiv", "next_power_of_2", "cdiv"}  # fmt: skip


def _is_plain(value: ast.expr | None) -> bool:
    """Constants, arithmetic on them, names, attributes and ``constexpr(...)`` calls: nothing that acts."""
    if value is None:
        return False
    for n in ast.walk(value):
        if isinstance(n, ast.Call) and ast.unparse(n.func) not in CALLABLE:
            return False
        if isinstance(n, ast.Lambda | ast.Await | ast.Yield | ast.NamedExpr | ast.ListComp | ast.GeneratorExp):
            return False
    return True


def _find(path: str, name: str, level: int) -> str | None:
    """File of a module imported by ``from name import`` in ``path``."""
    if level:
        base = Path(path).parent
        for _ in range(level - 1):
            base = base.parent
        target = base.joinpath(*name.split(".")) if name else base
    else:
        beside = Path(path).parent.joinpath(*name.split("."))
        if beside.with_suffix(".py").is_file():
            return str(beside.with_suffix(".py"))
        try:
            spec = importlib.util.find_spec(name.split(".")[0])
        except (ImportError, ValueError):
            return None
        if spec is None or not spec.submodule_search_locations:
            return None
        target = Path(next(iter(spec.submodule_search_locations))).joinpath(*name.split(".")[1:])
    for candidate in (target.with_suffix(".py"), target / "__init__.py"):
        if candidate.is_file():
            return str(candidate.resolve())
    return None


def decode(v: Any, sources: DeviceSource, tensors: Mapping[str, torch.Tensor]) -> Any:
    """A launch argument from its JSON form (``kernel/languages/_launches.encode``)."""
    ((kind, body),) = v.items()
    if kind == "=":
        return body
    if kind == "float":
        return float.fromhex(body) if "0x" in body else float(body)
    if kind == "tl.dtype":
        return tl.dtype(body)
    if kind == "torch.dtype":
        return getattr(torch, body)
    if kind == "tuple":
        return tuple(decode(x, sources, tensors) for x in body)
    if kind == "tensor":
        return tensors[body]
    if kind == "reinterpret":
        return triton.reinterpret(tensors[body[0]], tl.dtype(body[1]))
    if kind == "descriptor":
        name, shape, strides, block, padding = body
        return TensorDescriptor(tensors[name], shape, strides, block, padding)
    if kind == "function":
        return sources.function(body[0], body[1], {})
    raise Unsupported(f"launch argument of kind {kind!r}")
