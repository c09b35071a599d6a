"""KernelBench checkout: folders ``level1``, ``level2`` … of files ``N_name.py`` with ``Model`` and ``get_inputs``.

Format after KernelBench (Ouyang et al., 2025). Kernels are named as its scripts name them
(``level_1_problem_23_sample_0_kernel.py``), or as the problem.
"""

from __future__ import annotations

import re
from pathlib import Path

from ..problem import Problem, Suite

LEVEL = re.compile(r"level[_-]?(\d+)")
NUMBERED = re.compile(r"(\d+)_(.+)")


def _levels(root: Path) -> list[Path]:
    """The level folders of a checkout, of its inner folder, or the level folder itself."""
    for place in (root, root / "KernelBench"):
        found = [p for p in place.iterdir() if p.is_dir() and LEVEL.fullmatch(p.name)] if place.is_dir() else []
        if found:
            return sorted(found, key=lambda p: int(LEVEL.fullmatch(p.name)[1]))  # type: ignore[index]
    return [root] if LEVEL.fullmatch(root.resolve().name) else []


def _files(level: Path) -> list[Path]:
    numbered = [
        p for p in level.glob("*.py") if NUMBERED.fullmatch(p.stem) and "class Model" in p.read_text(errors="replace")
    ]
    return sorted(numbered, key=lambda p: (int(p.stem.partition("_")[0]), p.stem))


def claims(root: Path) -> bool:
    """Whether there is a level folder with numbered problems."""
    return any(_files(level) for level in _levels(root))


def read(root: Path) -> Suite:
    """All problems of all levels; the level is the category."""
    problems = [_problem(level, file) for level in _levels(root) for file in _files(level)]
    return Suite(root.resolve().name, "kernelbench", root, tuple(problems))


def _problem(level: Path, file: Path) -> Problem:
    name = level.resolve().name
    number = LEVEL.fullmatch(name)[1]  # type: ignore[index]
    shown = f"level_{number}_problem_{file.stem.partition('_')[0]}"
    return Problem(f"{name}/{file.stem}", file, f"level {number}", (file.stem, shown))
