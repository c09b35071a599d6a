"""Folders that each hold a ``problem.py``, with the kernels beside it.

The layout of ``tilewright audit``; the folder above a problem is its category.
"""

from __future__ import annotations

from pathlib import Path

from ..problem import Problem, Suite


def claims(root: Path) -> bool:
    """Whether there is a ``problem.py`` below."""
    return next(root.rglob("problem.py"), None) is not None


def read(root: Path) -> Suite:
    """All folders with a ``problem.py``; kernels are sought among them."""
    return Suite(
        root.resolve().name, "folders", root, tuple(_problem(root, p) for p in sorted(root.rglob("problem.py"))), root
    )


def _problem(root: Path, file: Path) -> Problem:
    parts = file.parent.relative_to(root).parts
    name = "/".join(parts) or root.resolve().name
    category = parts[0] if len(parts) > 1 else ""
    return Problem(name, file, category, (parts[-1],) if len(parts) > 1 else ())
