"""All operators, found by listing the folders of ``ops``: a folder ``name/`` with an ``op.py`` is one."""

from __future__ import annotations

import importlib
import pkgutil
from pathlib import Path

from ...errors import UserError
from .build import Built
from .operator import Operator

REGISTRY: dict[str, Built] = {}
ROOM = Path(__file__).parents[1]


def build(op: Operator) -> Built:
    """Register an operator; an operator of a name is registered once."""
    if op.name in REGISTRY:
        raise UserError(f"operator '{op.name}' is there twice ({op.folder} and {REGISTRY[op.name].op.folder})",
                        remedy="give one of them another name")  # fmt: skip
    REGISTRY[op.name] = Built(op)
    return REGISTRY[op.name]


def load() -> dict[str, object]:
    """Import every operator's ``op.py`` and ``api.py``; returns the public functions by name."""
    public: dict[str, object] = {}
    for info in pkgutil.iter_modules([str(ROOM)]):
        if info.name.startswith("_") or not (ROOM / info.name / "op.py").is_file():
            continue
        api = importlib.import_module(f"tilewright.ops.{info.name}.api")
        public |= {n: getattr(api, n) for n in api.__all__}
    return public


def find(name: str) -> Built:
    """An operator by name. Raises UserError with the names there are."""
    if name not in REGISTRY:
        raise UserError(f"there is no operator '{name}'; there are: {', '.join(sorted(REGISTRY))}",
                        remedy="tilewright ops list")  # fmt: skip
    return REGISTRY[name]
