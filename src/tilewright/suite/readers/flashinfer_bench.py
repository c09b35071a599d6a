"""flashinfer-bench data set: ``definitions/<op type>/<name>.json``, with workloads and solutions beside it.

Format after flashinfer-bench (2026). The op type is the category; ``solutions/`` holds its own kernels.
"""

from __future__ import annotations

import json
from pathlib import Path

from ...errors import UserError
from ..problem import Problem, Suite


def claims(root: Path) -> bool:
    """Whether there is a folder of definitions."""
    return next((root / "definitions").rglob("*.json"), None) is not None if (root / "definitions").is_dir() else False


def read(root: Path) -> Suite:
    """All definitions. Raises UserError for one that is not JSON or has no name."""
    problems = [_problem(root, p) for p in sorted((root / "definitions").rglob("*.json"))]
    own = root / "solutions"
    return Suite(root.resolve().name, "flashinfer_bench", root, tuple(problems), own if own.is_dir() else None)


def _problem(root: Path, path: Path) -> Problem:
    try:
        data = json.loads(path.read_text())
        name = str(data["name"])
    except (ValueError, KeyError, TypeError) as e:
        raise UserError(f"not a definition: {type(e).__name__}: {e}", where=str(path)) from None
    folder = path.relative_to(root / "definitions").parts
    category = str(data.get("op_type") or (folder[0] if len(folder) > 1 else ""))
    return Problem(name, path, category)
