"""What is to be measured: the tasks of ``tasks/``, their grids, and the operator's kernel that belongs to each."""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import shutil
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from tilewright.errors import UserError
from tilewright.report.ops_evidence import DIRECTIONS, slug
from tilewright.task.tensors import evaluate

HERE = Path(__file__).resolve().parent
OPERATORS = HERE.parents[2] / "src" / "tilewright" / "ops"


@dataclass(frozen=True)
class Case:
    """One function in one direction; ``task``: the Task, ``kernel``: which kernel of which operator folder it times."""

    function: str
    direction: str
    path: Path
    task: Any
    kernel: Any
    grid: dict[str, list[dict[str, int]]]

    @property
    def name(self) -> str:
        return f"{self.function}.{self.direction}"

    @property
    def problem(self) -> str:
        """As ``tilewright check`` takes it."""
        return f"{self.path}::{self.direction.upper()}"

    @property
    def source(self) -> Path:
        """The operator's kernel file."""
        return OPERATORS / self.kernel.folder / self.kernel.file


@dataclass(frozen=True)
class Point:
    """A case at one workload."""

    case: Case
    dims: dict[str, int]
    headline: bool

    @property
    def name(self) -> str:
        return f"{self.case.name}.{slug(self.dims)}"

    def work(self) -> tuple[int, int]:
        """Compulsory bytes and operations."""
        names = {**self.dims, "itemsize": 2}
        return evaluate(self.case.task.work.bytes, names), evaluate(self.case.task.work.flops, names)


def module(path: Path) -> ModuleType:
    """A task file, imported as a module with its neighbours."""
    sys.path.insert(0, str(path.parent))
    try:
        spec = importlib.util.spec_from_file_location(f"ops_task_{path.stem}", path)
        assert spec is not None and spec.loader is not None  # noqa: PT018
        found = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(found)
        return found
    finally:
        sys.path.remove(str(path.parent))
        sys.modules.pop("common", None)


def cases(only: Sequence[str] = (), folder: Path = HERE / "tasks") -> list[Case]:
    """All cases, or those of ``only`` (functions, or function.direction). Raises UserError for a name that is not there."""
    found = []
    for path in sorted(folder.glob("*.py")):
        if path.stem == "common":
            continue
        m = module(path)
        for d in DIRECTIONS:
            if d in m.KERNELS:
                found.append(Case(path.stem, d, path, getattr(m, d.upper()), m.KERNELS[d], m.GRID))
    known = {c.name for c in found} | {c.function for c in found}
    for name in only:
        if name not in known:
            raise UserError(f"there is no '{name}' among the tasks", remedy=f"choose from {', '.join(sorted(known))}")
    return [c for c in found if not only or c.name in only or c.function in only]


def untimed(chosen: Iterable[Case]) -> list[str]:
    """Public functions of tilewright.ops without a task here."""
    from tilewright.ops import __all__ as public
    from tilewright.ops._builder import REGISTRY

    known = {b.op.function for b in REGISTRY.values()}
    return sorted((known & set(public)) - {c.function for c in chosen})


def points(chosen: Iterable[Case], workloads: str = "headline", most: int | None = None) -> list[Point]:
    """First one headline workload of each case, then the other one, then (``all``) the rest, so that an interrupted run has
    what counts most. ``most``: no dim is larger."""
    every = list(chosen)
    found: list[Point] = []
    for kind in ("headline", "more")[: 2 if workloads == "all" else 1]:
        rounds = max((len(c.grid[kind]) for c in every), default=0)
        found += [Point(c, {n: min(v, most or v) for n, v in c.grid[kind][i].items()}, kind == "headline")
                  for i in range(rounds) for c in every if i < len(c.grid[kind])]  # fmt: skip
    return list({p.name: p for p in found}.values())


def kernel(case: Case, work: Path) -> str:
    """The kernel of a case as FILE::ENTRY: the operator's own file, with the task's adapter behind it where it needs one."""
    k = case.kernel
    if not k.adapter and not k.beside:
        return f"{case.source}::{k.entry}"
    folder = work / "kernels" / case.name
    folder.mkdir(parents=True, exist_ok=True)
    text = case.source.read_text()
    for name in k.beside:  # their text is part of the kernel, so the identity of the entry file holds it
        beside = case.source.with_name(name)
        shutil.copy(beside, folder / name)
        text += f"\n# with {name} {hashlib.sha256(beside.read_bytes()).hexdigest()}\n"
    path = folder / k.file
    _write(path, f"{text}\n{k.adapter}")
    return f"{path}::{k.entry}"


def stand_in(case: Case, work: Path) -> str:
    """The reference in the kernel's place, as a kernel file: for a run that tries everything but the kernel."""
    name = case.task.reference.__name__
    tree = ast.parse(case.path.read_text())
    functions = [n for n in tree.body if isinstance(n, ast.FunctionDef) and "TensorSpec" not in ast.unparse(n)]
    path = work / "stand_in" / case.name / "kernel.py"
    path.parent.mkdir(parents=True, exist_ok=True)
    _write(path, "import torch\n\n" + "\n\n".join(ast.unparse(f) for f in functions) + "\n")
    return f"{path}::{name}"


def _write(path: Path, text: str) -> None:
    if not path.is_file() or path.read_text() != text:
        path.write_text(text)


def sha256(case: Case) -> str:
    """Of the operator's kernel file."""
    return hashlib.sha256(case.source.read_bytes()).hexdigest()
