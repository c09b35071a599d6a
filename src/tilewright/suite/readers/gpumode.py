"""GPU MODE problems: one problem folder (``reference.py``, ``task.yml``), or a folder of problem folders.

Format after GPU MODE's reference-kernels. The set that a problem lies in (``pmpp_v2/``) is its category.
"""

from __future__ import annotations

from pathlib import Path

from ..problem import Problem, Suite


def _folders(root: Path) -> list[Path]:
    return sorted(p.parent for p in root.rglob("task.yml") if _is_problem(p.parent))


def _is_problem(folder: Path) -> bool:
    file = folder / "reference.py"
    return file.is_file() and "def generate_input" in file.read_text(errors="replace")


def claims(root: Path) -> bool:
    """Whether a problem folder lies here or below."""
    return bool(_folders(root))


def read(root: Path) -> Suite:
    """All problem folders at or below ``root``."""
    return Suite(root.resolve().name, "gpumode", root, tuple(_problem(root, f) for f in _folders(root)))


def _problem(root: Path, folder: Path) -> Problem:
    own = folder.resolve().name
    name = folder.relative_to(root).as_posix() if folder != root else own
    return Problem(name, folder, folder.resolve().parent.name, tuple(dict.fromkeys((own, own.removesuffix("_py")))))
