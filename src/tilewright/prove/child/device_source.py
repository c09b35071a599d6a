"""Device functions from source files, without running the files.

A launch names its function by file and name. Only what device code can use is executed from that file: imports of
Triton, math and torch, jitted functions, plain constants. Decorators other than ``jit`` are dropped: tuning and
heuristics have done their work when a launch is recorded.
"""

from __future__ import annotations

import ast
import contextlib
import copy
import functools
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
        self.bound: dict[str, dict[str, ast.ImportFrom]] = {}
        self.used: dict[str, set[str]] = {}
        self.choices: dict[str, dict[str, list[ast.FunctionDef]]] = {}
        self.chosen: dict[tuple[str, str], int] = {}
        self.filled: set[tuple[str, str]] = set()
        self.opened = time.time()

    def read(self, path: str) -> str:
        """Text of a file: the parent's, else the disk's, if it lay there before the candidate ran."""
        if path in self.given:
            return self.given[path]
        try:
            written = os.stat(path).st_ctime
        except OSError:
            raise forged("a launched function stands in a file that is not there for anyone else", path) from None
        if written >= self.opened:
            raise forged("a launched function stands in a file that was written after the kernel was loaded", path)
        return Path(path).read_text()

    def function(self, file: dict[str, Any], qualname: str, claimed: dict[str, Any]) -> Any:
        """The jitted function ``qualname`` of ``file``. Raises Unsupported if the file changed or has no such one. Of
        several of that name ``line`` says which."""
        path = file["path"]
        text = self.read(path)
        if hashlib.sha256(text.encode()).hexdigest() != file["sha256"]:
            raise forged(f"the launched function '{qualname}' does not come from the file that was given", path)
        module = self._module(path, text, claimed)
        self._fill(module, claimed)
        name = qualname.rpartition(".")[2]
        self._choose(module, path, name, file.get("line"))
        found = module.__dict__.get(name)
        if found is None or not hasattr(found, "run"):
            if defines(ast.parse(text), name):
                raise Unsupported(f"'{name}' is defined more than once or inside a function", where=path)
            raise forged(f"no jitted function '{qualname}' stands in the file", path)
        return found

    def _choose(self, module: types.ModuleType, path: str, name: str, line: int | None) -> None:
        """Bind a name that the file defines in several branches to the definition that begins at ``line``."""
        nodes = self.choices[path].get(name, ())
        for node in nodes:
            if line in (first_line(node), None if len(nodes) == 1 else -1) and self.chosen.get((path, name)) != line:
                self._define(module, copy.deepcopy(node), path)
                self.chosen[path, name] = line or 0

    def _module(self, path: str, text: str | None = None, claimed: dict[str, Any] | None = None) -> types.ModuleType:
        """What device code can use of a file. Another package file is read only for names that are used. ``claimed``
        constants are there for decorators that read them."""
        if path in self.modules:
            return self.modules[path]
        text = self.read(path) if text is None else text
        module = self.modules[path] = types.ModuleType(Path(path).stem)
        module.__file__ = path
        linecache.cache[path] = (len(text), None, text.splitlines(keepends=True), path)
        tree = ast.parse(text, filename=path)
        mark_jitted(tree)
        used = self.used[path] = names_used(tree)
        self.choices[path] = branches(tree)
        plain = {n: v for n, v in (claimed or {}).items() if not {"function", "triton"} & v.keys()}
        module.__dict__.update({n: constant(v) for n, v in plain.items()})
        self.bound[path] = {a.asname or a.name: n for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)
                            for a in n.names}  # fmt: skip
        for node in tree.body:
            self._statement(module, node, path, used)
        return module

    def _statement(self, module: types.ModuleType, node: ast.stmt, path: str, used: set[str]) -> None:
        match node:
            case ast.Import(names=names):
                if all(a.name.split(".")[0] in IMPORTABLE for a in names):
                    self._run(module, node, path)
            case ast.ImportFrom():
                self._import_from(module, node, path, used)
            case ast.FunctionDef(decorator_list=decorators) if any(_is_jit(d) for d in decorators):
                self._define(module, node, path)
            case ast.Assign() | ast.AnnAssign() if _is_plain(node.value) and _binds_names(node):
                try:
                    self._run(module, node, path)
                except Exception:  # a constant that needs what was left out: the launch that uses it will say so
                    return

    def _define(self, module: types.ModuleType, node: ast.FunctionDef, path: str) -> None:
        """Run a jitted function's definition, bare."""
        kept = next(d for d in node.decorator_list if _is_jit(d))
        node.decorator_list = [_bare(kept)]
        _disarm(node)
        try:
            self._run(module, node, path)
        except NameError:  # the decorator's arguments read what is not here: they tune how it compiles, not what it is
            node.decorator_list = [kept.func if isinstance(kept, ast.Call) else kept]
            self._run(module, node, path)

    def _import_from(self, module: types.ModuleType, node: ast.ImportFrom, path: str, used: set[str]) -> None:
        if node.level == 0 and (node.module or "").split(".")[0] in IMPORTABLE:
            with contextlib.suppress(ImportError):
                self._run(module, node, path)
            return
        for a in node.names:
            if (a.asname or a.name) in used:
                found = self._imported(node, a.name, path)
                if found is not None:
                    module.__dict__[a.asname or a.name] = found

    def _imported(self, node: ast.ImportFrom, name: str, path: str) -> Any:
        """What ``from node.module import name`` gives in ``path``, or None."""
        other = _find(path, node.module or "", node.level)
        found = self._name(other, name) if other else None
        if found is None:
            inner = _find(path, f"{node.module}.{name}" if node.module else name, node.level)
            found = self._module(inner) if inner else None
        return found

    def _name(self, path: str, name: str) -> Any:
        """A name of a file, through what the file imports."""
        module = self._module(path)
        if name not in module.__dict__ and name in self.bound.get(path, {}):
            node = self.bound[path].pop(name)  # popped: packages import each other in circles
            self._import_from(module, node, path, {name})
        return module.__dict__.get(name)

    def _run(self, module: types.ModuleType, node: ast.stmt, path: str) -> None:
        exec(compile(ast.Module([node], []), path, "exec"), module.__dict__)

    def _fill(self, module: types.ModuleType, claimed: dict[str, Any]) -> None:
        """Globals that the file makes in a way that is not executed here: the launch states them. A false value makes
        another kernel of it, and its results are judged like any other's."""
        path = str(module.__file__)
        for name, value in claimed.items():
            ((kind, body),) = value.items()
            if kind == "function":
                self._fill_function(module, path, name, body)
            elif name not in module.__dict__:
                module.__dict__[name] = constant(value)

    def _fill_function(self, module: types.ModuleType, path: str, name: str, body: list[Any]) -> None:
        """A function that the file's device code reads, and what it reads itself."""
        if name not in self.used[path] or (path, name) in self.filled:
            return
        self.filled.add((path, name))
        found = self.function(body[0], body[1], body[2] if len(body) > 2 else {})
        module.__dict__.setdefault(name, found)


def constant(value: dict[str, Any]) -> Any:
    """A claimed global that is no function."""
    ((kind, body),) = value.items()
    if kind == "constexpr":
        return tl.constexpr(constant(body))
    if kind == "float":
        return float.fromhex(body) if "0x" in body else float(body)
    if kind == "tl.dtype":
        return tl.dtype(body)
    if kind == "triton" and str(body[0]).startswith("triton.language"):
        return functools.reduce(getattr, body[1:], importlib.import_module(body[0]))
    return body


def first_line(node: ast.FunctionDef) -> int:
    """Line where a definition begins, decorators included."""
    return min([node.lineno, *(d.lineno for d in node.decorator_list)])


def branches(tree: ast.Module) -> dict[str, list[ast.FunctionDef]]:
    """Jitted functions by name that stand in ``if`` and ``try`` at the top of a file: a launch says which of
    them is there, if any."""
    blocks = [n for n in tree.body if isinstance(n, ast.If | ast.Try | ast.With)]
    found = [f for f in (*tree.body, *(f for b in blocks for f in ast.walk(b))) if isinstance(f, ast.FunctionDef)
             and any(_is_jit(d) for d in f.decorator_list)]  # fmt: skip
    names = {f.name for f in found if sum(f.name == g.name for g in found) > 1 or f not in tree.body}
    return {n: [copy.deepcopy(f) for f in found if f.name == n] for n in names}


def _is_jit(d: ast.expr) -> bool:
    text = ast.unparse(d).split("(")[0]
    return text in ("jit", "triton.jit", "triton.runtime.jit", "tl.jit")


def mark_jitted(tree: ast.Module) -> None:
    """``name = triton.jit(name)`` after a plain definition is a decorator written below it."""
    later = {n.value.args[0].id for n in tree.body
             if isinstance(n, ast.Assign) and isinstance(n.value, ast.Call) and _is_jit(n.value.func)
             and n.value.args and isinstance(n.value.args[0], ast.Name)}  # fmt: skip
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name in later:
            node.decorator_list = [ast.copy_location(ast.parse("triton.jit", mode="eval").body, node)]
            ast.fix_missing_locations(node)


def names_used(tree: ast.Module) -> set[str]:
    """Names that device functions and plain constants read."""
    nodes: list[ast.AST] = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)
                            and any(_is_jit(d) for d in n.decorator_list)]  # fmt: skip
    nodes += [
        n.value for n in tree.body if isinstance(n, ast.Assign | ast.AnnAssign) and _is_plain(n.value) and n.value
    ]
    return {n.id for top in nodes for n in ast.walk(top) if isinstance(n, ast.Name)}


def defines(tree: ast.Module, name: str) -> bool:
    """Whether a jitted function of that name stands anywhere in a file."""
    mark_jitted(tree)
    return any(isinstance(n, ast.FunctionDef) and n.name == name and any(_is_jit(d) for d in n.decorator_list)
               for n in ast.walk(tree))  # fmt: skip


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
        first, _, rest = name.partition(".")
        own = next((p for p in Path(path).parents if p.name == first), None)  # the package that the file lies in
        for place in (Path(path).parent.joinpath(*name.split(".")), own.joinpath(*rest.split(".")) if own else None):
            if place is not None and (found := _file(place)):
                return found
        try:
            spec = importlib.util.find_spec(name.split(".")[0])
        except (ImportError, ValueError):
            return None
        if spec is None or not spec.submodule_search_locations:
            return None
        target = Path(next(iter(spec.submodule_search_locations))).joinpath(*name.split(".")[1:])
    return _file(target)


def _file(target: Path) -> str | None:
    """The file of a module path."""
    for candidate in (target.parent / f"{target.name}.py", target / "__init__.py"):
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
        return sources.function(body[0], body[1], body[2] if len(body) > 2 else {})
    raise Unsupported(f"launch argument of kind {kind!r}")
