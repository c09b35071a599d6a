"""What a skill is: it finds the places of a kernel where it may be applied, and says why not where it may not."""

from __future__ import annotations

import hashlib
import importlib
import inspect
import pkgutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

EXAMPLES = Path(__file__).parent / "examples"


@dataclass(frozen=True)
class Site:
    """A place where a skill holds: ``text`` is the whole file after it was applied there."""

    line: int
    title: str
    text: str


@dataclass(frozen=True)
class Refusal:
    """A place where a skill was considered and does not hold, and why."""

    line: int
    reason: str


Found = Site | Refusal


class Skill:
    """``what``: before → after in a sentence; ``holds``: the conditions, all of them checked; ``keeps``: what becomes of
    the result (``every bit``, or in which way the rounding changes); ``source``: where the method is from. ``example``:
    a task file and a kernel under ``examples/`` on which it is verified before it is used."""

    name: ClassVar[str] = ""
    language: ClassVar[str] = "native"
    what: ClassVar[str] = ""
    holds: ClassVar[str] = ""
    keeps: ClassVar[str] = "every bit"
    source: ClassVar[str] = ""
    example: ClassVar[tuple[str, str]] = ("", "")

    def find(self, text: str) -> Iterator[Found]:
        """All places of ``text`` that look like this skill's, each applied alone or refused."""
        raise NotImplementedError

    def sites(self, text: str) -> list[Site]:
        return [f for f in self.find(text) if isinstance(f, Site) and f.text != text]

    def refusals(self, text: str) -> list[Refusal]:
        return [f for f in self.find(text) if isinstance(f, Refusal)]

    def sha256(self) -> str:
        """Identity of what it does and of what it was shown on: its own file, and its example."""
        files = [Path(inspect.getfile(type(self))), *(EXAMPLES / n for n in self.example)]
        return hashlib.sha256(b"\0".join(f.read_bytes() for f in files)).hexdigest()


def all_skills(language: str = "") -> list[Skill]:
    """Every skill, or those for one language, by name. One whose parser is not installed is found all the same."""
    package = importlib.import_module(__package__ or "")
    names = sorted(i.name for i in pkgutil.iter_modules(package.__path__) if i.name[0] != "_")
    found: Sequence[Skill] = [importlib.import_module(f"{__package__}.{n}").SKILL for n in names]
    return [s for s in found if not language or s.language == language]
