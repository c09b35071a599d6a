"""Which kernel answers which problem, by the names of files and folders. No kernel is read for this, but solutions.

A path below the kernels' folder holds the problem's name and what is left over, the method:

    softmax.py               problem softmax
    alice/softmax.py         problem softmax, method alice
    softmax/alice.py         problem softmax, method alice
    softmax/kernel.py        problem softmax
    level_1_problem_23_sample_0_kernel.py    KernelBench's names: method sample 0
    any.json                 a flashinfer-bench Solution names its definition; its author is the method
"""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path

from ..audit import PROBLEM_NAMES, SUFFIXES
from ..errors import UserError
from .problem import Problem, Suite

SAMPLE = re.compile(r"(level_\d+_problem_\d+)_sample_(\d+)(?:_kernel)?")
FILLER = ("kernel", "kernels", "submission", "solution", "solutions", "model_new", "candidate")
ALONE = "kernels"
"""The method's name where a path holds nothing but the problem's."""
PARTED = re.compile(r"\.|__|-")


@dataclass(frozen=True)
class Entry:
    """One kernel for one problem."""

    problem: Problem
    kernel: Path
    method: str

    @property
    def name(self) -> str:
        """Unique within a pairing."""
        return f"{self.problem.name} · {self.method}"


@dataclass(frozen=True)
class Pairing:
    """``strays``: files that look like kernels and answer no problem, with the reason."""

    entries: tuple[Entry, ...] = ()
    strays: dict[Path, str] = field(default_factory=dict)

    @property
    def methods(self) -> tuple[str, ...]:
        return tuple(sorted({e.method for e in self.entries}))

    def only(self, suite: Suite) -> Pairing:
        """The entries for the problems of ``suite``, which is a part of the one that was paired."""
        names = {p.name for p in suite.problems}
        kept = tuple(e for e in self.entries if e.problem.name in names)
        if not kept:
            raise UserError("no kernel is named after the problems that --only left over", remedy="leave out --only")
        return Pairing(tuple(replace(e, problem=suite.named(e.problem.name)) for e in kept), {})

    def missing(self, suite: Suite, method: str) -> list[Problem]:
        """Problems that ``method`` left unanswered. They count, as wrong ones do."""
        have = {e.problem.name for e in self.entries if e.method == method}
        return [p for p in suite.problems if p.name not in have]


def pair(suite: Suite, folder: Path) -> Pairing:
    """Pair the kernels below ``folder`` with the problems of ``suite``. Raises UserError where none fits."""
    if not folder.is_dir():
        raise UserError(f"'{folder}' is not a folder", remedy="--kernels names the folder that holds the kernels")
    names = _names(suite)
    entries: list[Entry] = []
    strays: dict[Path, str] = {}
    for file in sorted(p for p in folder.rglob("*") if _candidate(p, suite)):
        found = _solution(file, names) if file.suffix == ".json" else _named(file.relative_to(folder), names)
        if isinstance(found, str):
            strays[file] = found
        elif found is not None:
            entries.append(Entry(found[0], file, found[1]))
    if not entries:
        first = suite.problems[0]
        shown = first.aliases[0] if first.aliases else first.name
        raise UserError(
            f"no kernel below '{folder}' is named after a problem of '{suite.root}'",
            detail="\n".join(f"  {p.relative_to(folder)}: {why}" for p, why in list(strays.items())[:5]) or None,
            remedy=f"name a kernel's file or folder as its problem, e.g. {shown}.py",
        )
    return Pairing(tuple(_apart(entries)), strays)


def _names(suite: Suite) -> dict[str, list[Problem]]:
    """Every name that a problem may go by."""
    names: dict[str, list[Problem]] = {}
    for p in suite.problems:
        for alias in dict.fromkeys((p.name, *p.aliases)):
            names.setdefault(alias, []).append(p)
    return names


def _candidate(path: Path, suite: Suite) -> bool:
    if not path.is_file() or path.suffix not in (*SUFFIXES, ".json") or path.name.startswith(("_", ".")):
        return False
    if path.name in (*PROBLEM_NAMES, "task.py", "utils.py", "eval.py", "conftest.py") or path.name.endswith(
        "contract.py"
    ):
        return False
    if path.suffix == ".json" and suite.format != "flashinfer_bench":
        return False
    return path.resolve() not in {p.path.resolve() for p in suite.problems}


def _solution(file: Path, names: dict[str, list[Problem]]) -> tuple[Problem, str] | str | None:
    try:
        data = json.loads(file.read_text())
    except ValueError as e:
        return f"not JSON: {e}"
    if not isinstance(data, dict) or "definition" not in data or "sources" not in data:
        return None  # a definition, a trace, or nothing of ours
    found = names.get(str(data["definition"]))
    if not found:
        return f"its definition '{data['definition']}' is not in the suite"
    return found[0], str(data.get("author") or data.get("name") or file.stem)


def _named(path: Path, names: dict[str, list[Problem]]) -> tuple[Problem, str] | str:
    """The problem whose name is the longest in ``path``, and what is left of the path."""
    parts = [*path.parts[:-1], path.stem]
    if m := SAMPLE.fullmatch(parts[-1]):
        above = [x for x in parts[:-1] if not x.startswith("level")]
        return _only(names.get(m[1]), [*above, f"sample {m[2]}"], m[1])
    parts[-1:] = [x for x in PARTED.split(parts[-1]) if x] if parts[-1] not in names else parts[-1:]
    for length in range(len(parts), 0, -1):
        for start in range(len(parts) - length, -1, -1):
            name = "/".join(parts[start : start + length])
            if name in names:
                return _only(names[name], parts[:start] + parts[start + length :], name)
    return "no part of its name is a problem's"


def _only(found: list[Problem] | None, rest: list[str], name: str) -> tuple[Problem, str] | str:
    if not found:
        return f"'{name}' is no problem of this suite"
    if len(found) > 1:
        return f"'{name}' may be {' or '.join(p.name for p in found[:3])}: put it into a folder of that name"
    return found[0], "/".join(r for r in rest if r.lower() not in FILLER) or ALONE


def _apart(entries: list[Entry]) -> list[Entry]:
    """Two kernels of one method for one problem become two methods, by their files' names."""
    often = Counter((e.problem.name, e.method) for e in entries)
    made = []
    for e in entries:
        twice = often[e.problem.name, e.method] > 1
        made.append(replace(e, method=f"{e.method}/{e.kernel.stem}") if twice else e)
    again = Counter(e.name for e in made)
    return [replace(e, method=f"{e.method}{e.kernel.suffix}") if again[e.name] > 1 else e for e in made]
