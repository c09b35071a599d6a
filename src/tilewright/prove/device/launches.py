"""Triton launches on a device: watched, and changed on purpose where a gate wants to see what depends on them.

The candidate shares this process, so a record of a launch can be forged; what decides is whether the outputs move when
launches are left out or their results scaled, and that is compared by the parent.
"""

from __future__ import annotations

from typing import Any

import torch
from triton.runtime import autotuner
from triton.runtime.jit import JITFunction

from ...kernel.languages import _launches
from ..child.role_evaluator import RANGES, _moved

MOST_BYTES = 1 << 28  # of arguments that are compared around a launch


class LaunchFailed(RuntimeError):
    """What a launch raises that the device refuses."""


class Recorder(_launches.Recorder):
    """Around ``JITFunction.run`` and ``Autotuner._bench``. Which configuration a tuned kernel takes is chosen as in
    ``kernel/languages/_launches.py``."""

    def __init__(self) -> None:
        super().__init__(None, {})  # type: ignore[arg-type]  # nothing is evaluated elsewhere
        self.begin()

    def begin(self, mode: str = "normal", only: int | None = None, salt: int = 0, watched: bool = False) -> None:
        """Set what the launches to come do, and forget those that were."""
        self.mode, self.only, self.salt, self.watched = mode, only, salt, watched
        self.seen: list[dict[str, Any]] = []

    def install(self) -> None:
        recorder, original = self, JITFunction.run
        tune = autotuner.Autotuner._bench

        def run(fn: JITFunction, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:
            if warmup:
                return original(fn, *args, grid=grid, warmup=warmup, **kwargs)
            return recorder.around(fn, original, grid, args, kwargs)

        def bench(tuner: autotuner.Autotuner, *args: Any, config: Any, **meta: Any) -> list[float]:
            return recorder.bench(tuner, tune, args, config, meta)

        JITFunction.run = run
        autotuner.Autotuner._bench = bench

    def around(self, fn: JITFunction, original: Any, grid: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """One launch in the mode that is set."""
        mode = self.mode if self.only is None or self.only == len(self.seen) else "normal"
        note: dict[str, Any] = {"function": fn.fn.__name__}
        self.seen.append(note)
        if mode == "fail":
            note["error"] = {"kind": "launch", "message": "refused on purpose"}
            raise LaunchFailed("CUDA error: too many resources requested for launch")
        if mode == "noop":
            return original(fn, *args, grid=grid, warmup=True, **kwargs)
        tensors = arguments(args, kwargs) if self.watched or mode in RANGES else []
        before = [t.detach().clone() for t in tensors]
        out = original(fn, *args, grid=grid, warmup=False, **kwargs)
        note["wrote"] = {str(i): changed(t, b) for i, (t, b) in enumerate(zip(tensors, before, strict=True))}
        if mode in RANGES:
            move(tensors, before, self.salt + len(self.seen), RANGES[mode])
        return out


def arguments(args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[torch.Tensor]:
    """Tensors among a launch's arguments, one a storage, as far as they are small enough to compare."""
    found: dict[int, torch.Tensor] = {}
    for v in (*args, *kwargs.values()):
        t = v if isinstance(v, torch.Tensor) else getattr(v, "base", None)
        if isinstance(t, torch.Tensor) and t.numel() and t.untyped_storage().nbytes() <= MOST_BYTES:
            found.setdefault(t.data_ptr(), t)
    return list(found.values())


def changed(t: torch.Tensor, before: torch.Tensor) -> int:
    """Elements whose bits differ."""
    return int(different(t, before).sum())


def different(t: torch.Tensor, before: torch.Tensor) -> torch.Tensor:
    """Which elements have other bits (NaN equals NaN)."""
    return (t != before) & ~((t != t) & (before != before))


def move(tensors: list[torch.Tensor], before: list[torch.Tensor], salt: int, change: tuple[float, float]) -> None:
    """Scale what the launch wrote by random factors, as the evaluator does."""
    g = torch.Generator().manual_seed(salt % (1 << 62))
    with torch.no_grad():
        for t, b in zip(tensors, before, strict=True):
            where = different(t, b)
            if bool(where.any()):
                t[where] = _moved(t[where].cpu(), g, change).to(t.device)
