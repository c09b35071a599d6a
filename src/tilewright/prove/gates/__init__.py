"""One gate a file. Each file ends in ``GATE = TheGate()``; ``all_gates`` lists the folder in the order of work."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache

from ..gate import Gate

ORDER = (
    "task audit",
    "compile",
    "interface",
    "values",
    "shapes",
    "written",
    "purity",
    "honesty",
    "determinism",
    "special values",
    "accumulation",
    "strides",
    "gradients",
    "batch invariance",
    "metamorphic",
    "masked lanes",
    "coverage",
    "races",
    "bounds",
    "configurations",
    "resources",
    "rounding",
    "algebra",
    "streams",
    "graph replay",
    "load",
    "launch limits",
    "far offsets",
    "device configurations",
    "device agreement",
    "sanitizer",
)


@cache
def all_gates() -> tuple[Gate, ...]:
    """Every gate of this folder: those named in ``ORDER`` first, then the others by name."""
    found = [importlib.import_module(f"{__name__}.{m.name}").GATE for m in pkgutil.iter_modules(__path__)
             if not m.name.startswith("_")]  # fmt: skip
    place = {n: i for i, n in enumerate(ORDER)}
    return tuple(sorted(found, key=lambda g: (place.get(g.name, len(place)), g.name)))


def gate(name: str) -> Gate:
    """The gate of this name. Raises KeyError."""
    return {g.name: g for g in all_gates()}[name]
