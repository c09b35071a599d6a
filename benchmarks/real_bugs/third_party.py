"""Import one file of a checkout, unmodified, without running the packages above it.

``run.py`` puts this file, the adapter and ``checkout.py`` (``ROOT``: the checkout's folder) side by side.
"""

from __future__ import annotations

import importlib
import sys
import types
from pathlib import Path
from typing import Any

from checkout import ROOT


def load(name: str, **stubs: dict[str, Any]) -> types.ModuleType:
    """Module ``name`` (dotted). Packages above it are bare: their folder is known, their ``__init__`` does not run.

    ``stubs``: contents of modules that stand in for others, by dotted name with ``__`` for the dot.
    """
    first = name.split(".")[0]
    base = next(b for b in (Path(ROOT), Path(ROOT) / "src") if (b / first).is_dir())
    parts = name.split(".")
    for i in range(1, len(parts)):
        bare(".".join(parts[:i]), base.joinpath(*parts[:i]))
    for dotted, content in stubs.items():
        stand_in(dotted.replace("__", "."), content, base)
    return importlib.import_module(name)


def bare(name: str, folder: Path) -> None:
    """An empty package whose modules are found in ``folder``."""
    if name not in sys.modules:
        package = types.ModuleType(name)
        package.__path__ = [str(folder)]
        sys.modules[name] = package


def stand_in(name: str, content: dict[str, Any], base: Path) -> None:
    """A module with this content; names of it that are modules of the checkout are still found."""
    parts = name.split(".")
    for i in range(1, len(parts) + 1):
        bare(".".join(parts[:i]), base.joinpath(*parts[:i]))
    sys.modules[name].__dict__.update(content)
    if len(parts) > 1:
        setattr(sys.modules[".".join(parts[:-1])], parts[-1], sys.modules[name])
