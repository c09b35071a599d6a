"""What a patch did to a model, and the way back."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from types import MethodType, TracebackType
from typing import Any

import torch


@dataclass(frozen=True)
class Replaced:
    """One module whose forward now calls an operator. ``error``: the largest difference of the probe from the old forward,
    results and gradients, relative to the largest old value."""

    path: str
    what: str
    by: str
    error: float


@dataclass(frozen=True)
class Left:
    """One module that looks like a candidate and was not touched, and why."""

    path: str
    what: str
    why: str


@dataclass(repr=False)
class Patch:
    """What was replaced and what was left. ``undo()`` takes all back; so does leaving a ``with`` block."""

    replaced: list[Replaced] = field(default_factory=list)
    left: list[Left] = field(default_factory=list)
    _forwards: list[tuple[torch.nn.Module, Any]] = field(default_factory=list)

    def put(self, module: torch.nn.Module, function: Any) -> None:
        """Give one module a forward of its own. A bound method, so that a deep copy of the model calls its own layers."""
        method = MethodType(function, module)
        module.__dict__["forward"] = method
        self._forwards.append((module, method))

    def take(self, module: torch.nn.Module) -> None:
        """Give one module its class' forward again, unless someone else replaced it since."""
        mine = [m for owner, m in self._forwards if owner is module]
        if module.__dict__.get("forward") in mine:
            del module.__dict__["forward"]
        self._forwards = [(owner, m) for owner, m in self._forwards if owner is not module]

    def undo(self) -> None:
        """Each module has its class' forward again. Safe to call twice."""
        for module, _ in list(self._forwards):
            self.take(module)

    @property
    def active(self) -> bool:
        return bool(self._forwards)

    def __enter__(self) -> Patch:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.undo()

    def __repr__(self) -> str:
        state = "" if self.active or not self.replaced else ", undone"
        lines = [f"Patch: {len(self.replaced)} replaced, {len(self.left)} left alone{state}"]
        for (what, by, path), errors in grouped((r.what, r.by, places(r.path), r.error) for r in self.replaced):
            lines.append(f"  {len(errors):3} x {path}: {what} -> {by} (differs by at most {max(errors):.1e})")
        for (what, why, path), found in grouped((f.what, f.why, places(f.path), 0.0) for f in self.left):
            lines.append(f"  left {len(found)} x {path}: {what}; {why}")
        return "\n".join(lines)


def places(path: str) -> str:
    """``layers.*.mlp`` for ``layers.3.mlp``."""
    return re.sub(r"(^|\.)\d+(?=\.|$)", r"\1*", path) or "(the model)"


def grouped(items: Any) -> list[tuple[tuple[str, str, str], list[float]]]:
    """Entries that differ in their last part alone, together, in the order in which they came."""
    found: dict[tuple[str, str, str], list[float]] = {}
    for *key, last in items:
        found.setdefault((key[0], key[1], key[2]), []).append(last)
    return list(found.items())
