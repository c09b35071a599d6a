"""Baselines: one file a kind. A file here defines ``NAME`` and ``offer(context) -> [Offer]``; they are found by listing.

An offer is something to be timed, or the reason why it is not to be had. That it is right is shown later, by the same
comparer that judges the kernel, and for kernel files by a whole check.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ...errors import UserError
from ...task.task import TaskSheet
from ..hand import Source
from ..record import Kind

ORDER = ("eager", "compile", "max-autotune", "graph", "vendor", "peers", "files")


@dataclass(frozen=True)
class Context:
    """What an offer may depend on. ``files``: kernel files that the caller named."""

    sheet: TaskSheet
    problem: str
    device: str = "cpu"
    files: tuple[str, ...] = ()
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def folder(self) -> Path:
        path = Path(self.problem.partition("::")[0])
        return path if path.is_dir() else path.parent

    def itself(self, name: str, transform: str) -> Source:
        """The problem's reference as a source."""
        return Source(name, problem=self.problem, transform=transform, options=self.options)


@dataclass(frozen=True)
class Offer:
    """``source`` to be timed, or ``reason`` why there is none."""

    name: str
    kind: Kind
    source: Source | None = None
    reason: str = ""
    path: str = ""


def kinds() -> dict[str, Any]:
    """All kinds by name, in their order."""
    found = {}
    for info in pkgutil.iter_modules(__path__):
        if not info.name.startswith("_"):
            module = importlib.import_module(f"{__name__}.{info.name}")
            found[module.NAME] = module
    return dict(sorted(found.items(), key=lambda i: ORDER.index(i[0]) if i[0] in ORDER else len(ORDER)))


def named(wanted: Iterable[str] | None) -> list[str]:
    """The ``wanted`` kinds (None: all). Raises UserError for one that is not there."""
    known = kinds()
    chosen = list(known) if wanted is None else list(wanted)
    for name in chosen:
        if name not in known:
            raise UserError(f"there is no kind of baseline '{name}'", remedy=f"choose from {', '.join(known)}")
    return chosen


def offers(context: Context, wanted: Iterable[str] | None = None) -> list[Offer]:
    """Every offer of the ``wanted`` kinds (None: all), and of all files named by the caller. Raises UserError for a kind
    that is not there."""
    known = kinds()
    chosen = named(wanted)
    if context.files and "files" not in chosen:
        chosen.append("files")
    made = [o for name in chosen for o in known[name].offer(context)]
    return list({o.name: o for o in made}.values())
