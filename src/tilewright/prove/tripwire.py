"""Tripwire: what a kernel's source looks like it might do. Hints for a reader, in three tiers; experiments decide.

* ``odd``: has no place in a kernel (patches others' functions, walks frames, exits).
* ``check``: has honest uses, and is how cheats are built (swallowed exceptions, branches on the device).
* ``note``: worth knowing (a fallback to torch, state at module level).

Each rule is one function over the syntax tree that yields ``(line, what)``. Source of the list: cheats catalogued by
public leaderboards and kernel benchmarks.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

from ..task.syntax import parse

Tier = Literal["odd", "check", "note"]
Rule = Callable[[ast.Module], Iterator[tuple[int, str]]]
RULES: list[tuple[Tier, Rule]] = []
FOREIGN = ("torch", "triton", "time", "statistics", "numpy", "builtins", "sys", "os", "tl", "np")


@dataclass(frozen=True)
class Hint:
    """A suspicious place. ``tier`` as above."""

    tier: Tier
    line: int
    what: str

    def __str__(self) -> str:
        return f"line {self.line} {self.what}"


def rule(tier: Tier) -> Callable[[Rule], Rule]:
    """Register a rule under a tier."""

    def add(f: Rule) -> Rule:
        RULES.append((tier, f))
        return f

    return add


def scan(text: str) -> list[Hint]:
    """All hints, gravest tier first; none for text that is no Python."""
    try:
        module = parse(text)
    except SyntaxError:
        return []
    order = {"odd": 0, "check": 1, "note": 2}
    found = {Hint(tier, line, what) for tier, f in RULES for line, what in f(module)}
    return sorted(found, key=lambda h: (order[h.tier], h.line, h.what))


def _root(node: ast.expr) -> str:
    while isinstance(node, ast.Attribute | ast.Subscript | ast.Call):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""


def _calls(module: ast.Module) -> Iterator[tuple[ast.Call, str]]:
    for n in ast.walk(module):
        if isinstance(n, ast.Call):
            yield n, ast.unparse(n.func)


@rule("odd")
def patches(module: ast.Module) -> Iterator[tuple[int, str]]:
    """``torch.allclose = ...`` and ``setattr(torch, ...)``. Switches under ``backends`` are settings, not patches."""
    for n in ast.walk(module):
        if isinstance(n, ast.Assign | ast.AugAssign | ast.AnnAssign):
            for t in n.targets if isinstance(n, ast.Assign) else [n.target]:
                text = ast.unparse(t)
                if isinstance(t, ast.Attribute) and _root(t) in FOREIGN and ".backends." not in text:
                    yield n.lineno, f"assigns to {text}"
    for c, f in _calls(module):
        if f == "setattr" and c.args and _root(c.args[0]) in FOREIGN:
            yield c.lineno, f"sets an attribute of {ast.unparse(c.args[0])}"


@rule("odd")
def looks_around(module: ast.Module) -> Iterator[tuple[int, str]]:
    """Frames, the garbage collector's objects, ``/proc``."""
    for n, f in _calls(module):
        if f in ("sys._getframe", "inspect.stack", "inspect.currentframe", "gc.get_objects", "gc.get_referrers"):
            yield n.lineno, f"calls {f}"
    for node in ast.walk(module):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.startswith("/proc/"):
            yield node.lineno, f"names {node.value}"


@rule("odd")
def leaves(module: ast.Module) -> Iterator[tuple[int, str]]:
    """Ends the process, forks, writes to descriptors."""
    for n, f in _calls(module):
        if f in ("os._exit", "sys.exit", "exit", "quit", "os.kill", "os.abort", "os.fork", "os.write", "os.dup2"):
            yield n.lineno, f"calls {f}"


@rule("odd")
def knows_the_checker(module: ast.Module) -> Iterator[tuple[int, str]]:
    """Asks whether Tilewright is there."""
    for n in ast.walk(module):
        names = (
            [a.name for a in n.names]
            if isinstance(n, ast.Import)
            else [n.module or ""]
            if isinstance(n, ast.ImportFrom)
            else [n.value]
            if isinstance(n, ast.Constant) and isinstance(n.value, str) and " " not in n.value
            else []
        )
        if any(name.split(".")[0] == "tilewright" for name in names):
            yield getattr(n, "lineno", 0), "names tilewright"


@rule("odd")
def lazy_tensors(module: ast.Module) -> Iterator[tuple[int, str]]:
    """Subclasses of Tensor."""
    for n in ast.walk(module):
        if isinstance(n, ast.ClassDef) and any(ast.unparse(b) in ("torch.Tensor", "Tensor") for b in n.bases):
            yield n.lineno, f"class {n.name} subclasses Tensor"


@rule("check")
def swallows(module: ast.Module) -> Iterator[tuple[int, str]]:
    """``except Exception`` (or bare) without ``raise``, inside a function."""
    for f in ast.walk(module):
        for n in ast.walk(f) if isinstance(f, ast.FunctionDef) else ():
            if (
                isinstance(n, ast.ExceptHandler)
                and (n.type is None or ast.unparse(n.type) in ("Exception", "BaseException"))
                and not any(isinstance(x, ast.Raise) for x in ast.walk(n))
            ):
                yield n.lineno, "swallows every exception"


@rule("check")
def threads(module: ast.Module) -> Iterator[tuple[int, str]]:
    """Threads and side streams."""
    for n, f in _calls(module):
        if f.endswith(("Thread", "ThreadPoolExecutor", "cuda.Stream", "multiprocessing.Process")):
            yield n.lineno, f"starts {f}"


@rule("check")
def keyed_by_address(module: ast.Module) -> Iterator[tuple[int, str]]:
    """A dictionary looked up by ``data_ptr()`` or ``id()``."""
    for n in ast.walk(module):
        if isinstance(n, ast.Subscript) or (
            isinstance(n, ast.Call) and ast.unparse(n.func).endswith((".get", ".setdefault"))
        ):
            inside = n.slice if isinstance(n, ast.Subscript) else ast.Tuple(list(n.args))
            for c in ast.walk(inside):
                if isinstance(c, ast.Call) and (
                    ast.unparse(c.func) == "id" or ast.unparse(c.func).endswith(".data_ptr")
                ):
                    yield n.lineno, "looks something up by address"


@rule("check")
def device_branch(module: ast.Module) -> Iterator[tuple[int, str]]:
    """Another path on another device."""
    for n in ast.walk(module):
        if isinstance(n, ast.If | ast.IfExp):
            test = ast.unparse(n.test)
            if ".is_cuda" in test or "device.type" in test or "cuda.is_available" in test:
                yield n.lineno, f"branches on the device ({test[:60]})"


@rule("note")
def seeded(module: ast.Module) -> Iterator[tuple[int, str]]:
    """Random numbers in a kernel file."""
    for n, f in _calls(module):
        if f.endswith((".manual_seed", "torch.randn", "torch.rand", "random.seed", "get_rng_state")):
            yield n.lineno, f"calls {f}"


@rule("note")
def module_state(module: ast.Module) -> Iterator[tuple[int, str]]:
    """``global`` statements: state between calls."""
    for n in ast.walk(module):
        if isinstance(n, ast.Global):
            yield n.lineno, f"keeps {', '.join(n.names)} at module level"
