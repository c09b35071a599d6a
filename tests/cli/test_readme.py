"""The first look of README is what the program prints: the same rows, box and lines, whatever the numbers."""

from __future__ import annotations

import re
from pathlib import Path

from .conftest import Run

ROOT = Path(__file__).parents[2]
COMMAND = "tilewright check examples/01_softmax/problem.py examples/01_softmax/wrong.py"


KNOWN = (
    r"(?:╭─ [^:─]*(?:─|:)|╰─|│ (?:class|where|expected|got|smallest|  x)|(?:[a-z]+ ?)+  \w+  +\w+|REJECT|because|again)"
)


def form(text: str) -> list[str]:
    """Each line's beginning: gate, role and status; the box's title; labels; the words at the end."""
    parts = (re.match(KNOWN, line) for line in text.splitlines())
    return [re.sub(" +", " ", p[0]) for p in parts if p]


def test_first_look(tmp_path: Path, tilewright: Run) -> None:
    block = (ROOT / "README.md").read_text().partition(f"$ {COMMAND}\n")[2].partition("```")[0]
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    done = tilewright(*COMMAND.split()[1:], env={"COLUMNS": "108"})
    assert done.returncode == 1, done.stderr
    assert form(block) == form(done.stdout), done.stdout
    assert {len(line) for line in block.splitlines() if line.startswith(("│", "╭", "╰"))} == {108}
