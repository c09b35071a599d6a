"""Readers: one file a format, with ``claims(root) -> bool`` and ``read(root) -> Suite``, found by listing this folder."""

from __future__ import annotations

import importlib
import pkgutil
from pathlib import Path
from types import ModuleType

from ...errors import UserError
from ..problem import Suite

ORDER = ("kernelbench", "flashinfer_bench", "gpumode", "folders")


def readers() -> dict[str, ModuleType]:
    """All readers by name, in the order in which they are asked."""
    names = [i.name for i in pkgutil.iter_modules(__path__) if not i.name.startswith("_")]
    names.sort(key=lambda n: (ORDER.index(n) if n in ORDER else len(ORDER), n))
    return {n: importlib.import_module(f"{__name__}.{n}") for n in names}


def read_suite(root: Path) -> Suite:
    """The suite below ``root``. Raises UserError for a missing folder and for one that no reader claims."""
    if not root.is_dir():
        raise UserError(f"'{root}' is not a folder", remedy="tilewright suite list SUITE")
    known = readers()
    for reader in known.values():
        if reader.claims(root):
            found: Suite = reader.read(root)
            return found
    raise UserError(f"'{root}' is no suite that Tilewright can read",
                    detail="\n".join(f"  {n}: {(m.__doc__ or '').strip().splitlines()[0]}" for n, m in known.items()),
                    remedy="give the folder that holds the problems")  # fmt: skip
