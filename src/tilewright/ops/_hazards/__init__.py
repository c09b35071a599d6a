"""Hazards: what public kernels were seen to fail at, each tried on every operator. One function is one hazard.

A hazard is a function ``name(case)`` in a file of this folder, marked with ``@hazard(numbers)``; it raises AssertionError
with what was expected and got, or returns the reason why it does not apply. What the kernel itself may do wrong (bounds,
races, strides, sizes, values) is asked of Tilewright's own check: ``catalogue.GATES``.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass

from .case import Case

Run = Callable[[Case], str | None]


@dataclass(frozen=True)
class Hazard:
    """``numbers``: which of the catalogue's hazards it covers. ``device``: where it can run, or '' for anywhere."""

    name: str
    run: Run
    numbers: tuple[int, ...]
    device: str = ""


HAZARDS: dict[str, Hazard] = {}


def hazard(*numbers: int, device: str = "") -> Callable[[Run], Run]:
    """Mark a function as a hazard."""

    def mark(function: Run) -> Run:
        HAZARDS[function.__name__] = Hazard(function.__name__, function, numbers, device)
        return function

    return mark


def load(device: str = "cpu") -> dict[str, Hazard]:
    """All hazards that can be tried on a device, by name."""
    for info in pkgutil.iter_modules(__path__):
        if info.name not in ("case", "catalogue"):
            importlib.import_module(f"{__name__}.{info.name}")
    return {n: h for n, h in HAZARDS.items() if h.device in ("", device)}


def tried(case: Case, hazard: Hazard) -> tuple[str, str]:
    """``pass``, ``skip`` or ``fail``, and why."""
    try:
        reason = hazard.run(case)
    except Exception as e:  # whatever the operator raises is what is asked for
        return "fail", f"{type(e).__name__}: {e}" if not isinstance(e, AssertionError) else str(e)
    return ("skip", reason) if reason else ("pass", "")
