"""Hazards: what public kernels were seen to fail at, each tried on every operator. One function is one hazard.

A hazard is a function ``name(case)`` in a file of this folder, marked with ``@hazard(numbers)``; it raises AssertionError
with what was expected and got, or returns the reason why it does not apply. Kernel hazards (bounds, races, strides, values
of the kernel itself) are asked of Tilewright's own check.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable

from .case import Case

Hazard = Callable[[Case], str | None]
HAZARDS: dict[str, Hazard] = {}
NUMBERS: dict[str, tuple[int, ...]] = {}


def hazard(*numbers: int) -> Callable[[Hazard], Hazard]:
    """Mark a function as a hazard. ``numbers``: which of the catalogue's 25 it covers (docs/ops.md)."""

    def mark(function: Hazard) -> Hazard:
        HAZARDS[function.__name__] = function
        NUMBERS[function.__name__] = numbers
        return function

    return mark


def load() -> dict[str, Hazard]:
    """All hazards, by name."""
    for info in pkgutil.iter_modules(__path__):
        if info.name != "case":
            importlib.import_module(f"{__name__}.{info.name}")
    return HAZARDS
