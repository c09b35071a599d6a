"""What launches do on purpose where a gate wants to see what depends on them: nothing, fail, or give something else.

A launch is that of a Triton or ``.cu`` kernel, or a call of a compiled C++ function that a Python file exports. The
candidate shares this process, so a record of a launch can be forged; what decides is whether the outputs move when
launches do, and that is compared by the parent.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from ...task import tree
from ..child.role_evaluator import RANGES, _moved
from ..child.watch import FINITE_BYTE
from .watch import fill

MOST_BYTES = 1 << 28  # of arguments that are compared around a launch


class LaunchFailed(RuntimeError):
    """What a launch raises that the device refuses."""


class Experiments:
    """The mode that is set, and the launches since then."""

    def __init__(self) -> None:
        self.begin()

    def begin(self, mode: str = "normal", only: int | None = None, salt: int = 0, watched: bool = False) -> None:
        """Set what the launches to come do, and forget those that were."""
        self.mode, self.only, self.salt, self.watched = mode, only, salt, watched
        self.seen: list[dict[str, Any]] = []

    def around(self, name: str, call: Callable[[], Any], arguments: Any, skip: Callable[[], Any] | None = None) -> Any:
        """One launch in the mode that is set. ``skip``: what stands for it if it does nothing."""
        mode = self.mode if self.only is None or self.only == len(self.seen) else "normal"
        note: dict[str, Any] = {"function": name}
        self.seen.append(note)
        if mode == "fail":
            note["error"] = {"kind": "launch", "message": "refused on purpose"}
            raise LaunchFailed("CUDA error: too many resources requested for launch")
        if mode == "noop" and skip is not None:
            return skip()
        tensors = small(arguments) if self.watched or mode != "normal" else []
        before = [t.detach().clone() for t in tensors]
        out = call()
        made = fresh(out, tensors) if mode != "normal" else []
        note["wrote"] = {
            str(i): int(different(t, b).sum()) for i, (t, b) in enumerate(zip(tensors, before, strict=True))
        }
        with torch.no_grad():
            if mode in RANGES:
                g = torch.Generator().manual_seed((self.salt + len(self.seen)) % (1 << 62))
                move([*zip(tensors, before, strict=True), *((t, None) for t in made)], g, RANGES[mode])
            elif mode == "noop":
                undo(tensors, before, made)
        return out


def small(arguments: Any) -> list[torch.Tensor]:
    """Tensors among a launch's arguments, one a place in memory, as far as they are small enough to compare."""
    found: dict[int, torch.Tensor] = {}
    for v in arguments:
        t = v if isinstance(v, torch.Tensor) else getattr(v, "base", None)
        if isinstance(t, torch.Tensor) and t.numel() and t.untyped_storage().nbytes() <= MOST_BYTES:
            found.setdefault(t.data_ptr(), t)
    return list(found.values())


def fresh(out: Any, tensors: list[torch.Tensor]) -> list[torch.Tensor]:
    """Tensors that a call returned and that are not among its arguments."""
    known = {t.untyped_storage().data_ptr() for t in tensors}
    try:
        made = tree.flatten(out)[1].values()
    except Exception:  # a compiled kernel's handle, say
        return []
    return [t for t in made if t.numel() and t.untyped_storage().data_ptr() not in known]


def different(t: torch.Tensor, before: torch.Tensor) -> torch.Tensor:
    """Which elements have other bits (NaN equals NaN)."""
    return (t != before) & ~((t != t) & (before != before))


def move(
    pairs: list[tuple[torch.Tensor, torch.Tensor | None]], g: torch.Generator, change: tuple[float, float]
) -> None:
    """Scale what a launch wrote by random factors, as the evaluator does."""
    for t, before in pairs:
        where = torch.ones_like(t, dtype=torch.bool) if before is None else different(t, before)
        if bool(where.any()):
            t[where] = _moved(t[where].cpu(), g, change).to(t.device)


def undo(tensors: list[torch.Tensor], before: list[torch.Tensor], made: list[torch.Tensor]) -> None:
    """As if the launch had written nothing."""
    for t, b in zip(tensors, before, strict=True):
        t.copy_(b)
    for t in made:
        fill(t, FINITE_BYTE)
