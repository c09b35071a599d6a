"""Source: a problem as the child that runs it sees it. The parent only ever sees ``sheet``.

A reader is a file of this folder with ``claims(path, entry) -> bool`` and ``read(path, entry, overrides, budget) ->
Source``; they are found by listing the folder and asked in the order of ``ORDER``, then by name.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol

import torch

from ...errors import TaskError
from ..calling import Calling
from ..overrides import Overrides, beside, load
from ..task import TaskSheet, Workload
from .load import UserModule
from .workloads import Budget


class Source(Protocol):
    """Lives in the child; user code is behind it. Inputs are named leaves in call order (``x``, ``data.0``)."""

    sheet: TaskSheet

    def inputs(self, workload: Workload, seed: int) -> dict[str, Any]:
        """Named inputs made by the task's own code."""

    def state(self, workload: Workload, seed: int) -> dict[str, torch.Tensor]:
        """Parameters and buffers of the reference, built under ``seed``; {} if it has none."""

    def reference(
        self, inputs: dict[str, Any], workload: Workload, state: dict[str, torch.Tensor] | None, *,
        dtype: torch.dtype | None,
    ) -> Any:  # fmt: skip
        """Run the reference. float64: as the oracle; no cast in its text rounds below float64. ``state`` is updated
        in place where the reference updates it; without it, that of the last ``state`` call's seed is built. An input
        named ``state.NAME`` takes the place of that parameter. Random numbers come from torch's global generator."""

    def calling(self, workload: Workload, seed: int) -> tuple[Calling, dict[str, torch.Tensor]]:
        """How a kernel is called, as data, and the tensors among its constructor's arguments (``init.*``)."""

    def check(self, inputs: dict[str, Any], outputs: Any) -> tuple[bool, str] | None:
        """The problem's own checker, where its contract says ``checker``; else None."""

    def law(self, name: str, run: Callable[..., Any], inputs: dict[str, Any]) -> bool:
        """Whether the metamorphic law ``name`` holds for ``run``."""


ORDER = ("tilewright", "flashinfer_bench", "gpumode", "kernelbench", "functions")


def readers() -> dict[str, ModuleType]:
    """All readers of this folder by name."""
    found = {}
    for info in pkgutil.iter_modules([str(Path(__file__).parent)]):
        module = importlib.import_module(f"{__package__}.{info.name}")
        if hasattr(module, "claims") and hasattr(module, "read"):
            found[info.name] = module
    return dict(sorted(found.items(), key=lambda i: (ORDER.index(i[0]) if i[0] in ORDER else len(ORDER), i[0])))


def read(
    path: str, *, overrides: str | Path | None = None, reference: str | None = None, budget: Budget | None = None
) -> Source:
    """The problem at ``path``, ``path::function`` or ``path`` with ``reference`` (``function`` or ``file::function``).

    ``overrides``: a contract file; without it ``<problem>.contract.toml`` or ``contract.toml`` beside the problem is
    used. Raises TaskError for a missing file, an unknown format, and whatever is wrong with the problem.
    """
    name, _, entry = str(path).partition("::")
    if reference:
        file, sep, function = reference.partition("::")
        name, entry = (file, function) if sep else (name, reference)
    problem = Path(name)
    if not problem.exists():
        raise TaskError(f"problem '{name}' does not exist", remedy="check the path; a problem is FILE, FOLDER or "
                        "FILE::FUNCTION")  # fmt: skip
    known = readers()
    for reader in known.values():
        if reader.claims(problem, entry):
            found = Path(overrides) if overrides else beside(problem)
            changes = load(found) if found else Overrides()
            source: Source = reader.read(problem, entry, changes, budget or Budget())
            return source
    if problem.suffix == ".py":
        UserModule(problem)  # a file that can't be parsed has no form: say that instead
    raise TaskError(
        f"'{name}' is no problem that Tilewright can read",
        detail="\n".join(f"  {n}: {(m.__doc__ or '').strip().splitlines()[0]}" for n, m in known.items()),
        remedy="give FILE::FUNCTION, or define TASK, or Model with get_inputs and get_init_inputs",
    )
