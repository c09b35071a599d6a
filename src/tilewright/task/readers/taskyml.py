"""``task.yml`` of a GPU MODE problem: its tests and benchmarks. PyYAML where it is installed, else the flat form."""

from __future__ import annotations

import ast
import hashlib
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...errors import EnvironmentProblem, TaskError

Spec = dict[str, Any]
_SECTIONS = ("tests", "benchmarks", "files")


@dataclass(frozen=True)
class TaskYml:
    """``folders``: where the files that it names lie."""

    tests: tuple[Spec, ...] = ()
    benchmarks: tuple[Spec, ...] = ()
    folders: tuple[Path, ...] = ()
    sha256: str = ""

    @property
    def given(self) -> Spec:
        """The greatest benchmark: what the problem is timed on."""
        return max((*self.tests, *self.benchmarks), key=size_of)

    @property
    def least(self) -> Spec:
        """The smallest spec."""
        return min((*self.tests, *self.benchmarks), key=size_of)

    def values(self, name: str) -> list[int]:
        """All listed values of one argument."""
        return [s[name] for s in (*self.tests, *self.benchmarks) if isinstance(s.get(name), int)]


def size_of(spec: Spec) -> float:
    """How large a spec is: the product of its integers."""
    product = 1.0
    for k, v in spec.items():
        if k != "seed" and isinstance(v, int) and not isinstance(v, bool) and v > 0:
            product *= v
    return product


def read_task_yml(path: Path) -> TaskYml:
    """Raises TaskError if it can't be parsed or lists nothing; EnvironmentProblem if its form needs PyYAML."""
    raw = path.read_bytes()
    data = _parse(raw.decode(errors="replace"), path)
    tests, benchmarks = (tuple(s for s in data.get(k) or () if isinstance(s, dict)) for k in ("tests", "benchmarks"))
    if not tests and not benchmarks:
        raise TaskError("task.yml lists no tests and no benchmarks", where=str(path),
                        remedy='add tests:\n      - {"size": 128, "seed": 1}')  # fmt: skip
    folders: list[Path] = []
    for file in data.get("files") or ():
        source = str(file.get("source", "")) if isinstance(file, dict) else ""
        if source and not source.startswith("@"):
            folder = (path.parent / source).resolve().parent
            if folder.is_dir() and folder not in folders:
                folders.append(folder)
    return TaskYml(tests, benchmarks, tuple(folders), hashlib.sha256(raw).hexdigest())


def _parse(text: str, path: Path) -> dict[str, Any]:
    try:
        import yaml
    except ImportError:
        return parse_flat(text, path)
    try:
        data = yaml.safe_load(text)
    except yaml.YAMLError as e:
        raise TaskError(f"not YAML: {str(e).splitlines()[0]}", where=str(path)) from None
    if not isinstance(data, dict):
        raise TaskError("task.yml is not a table", where=str(path))
    return data


def parse_flat(text: str, path: Path) -> dict[str, Any]:
    """The form in use: sections with one ``- {"size": 1024, "seed": 1}`` a line. Other sections are passed over."""
    data: dict[str, Any] = {}
    section = ""
    for number, line in enumerate(text.splitlines(), 1):
        if top := re.match(r"(\w+):", line):
            section = top[1]
            continue
        item = line.split("  #")[0].strip()
        if section not in _SECTIONS or not item or item.startswith("#"):
            continue
        body = re.fullmatch(r"-\s*\{(.*)\}", item)
        if body is None:
            raise EnvironmentProblem("this task.yml needs PyYAML to be read", where=f"{path}:{number}",
                                     detail=item, remedy="pip install pyyaml")  # fmt: skip
        data.setdefault(section, []).append({k: _value(v) for k, v in _pairs(body[1])})
    return data


def _pairs(body: str) -> list[tuple[str, str]]:
    """``"size": 1024, shape: [1, 2]`` → pairs; commas inside brackets and quotes don't split."""
    parts, depth, quote, start = [], 0, "", 0
    for i, c in enumerate(body + ","):
        if quote:
            quote = "" if c == quote else quote
        elif c in "\"'":
            quote = c
        elif c in "[{(":
            depth += 1
        elif c in "]})":
            depth -= 1
        elif c == "," and depth == 0:
            parts.append(body[start:i])
            start = i + 1
    pairs = [p.split(":", 1) for p in parts if ":" in p]
    return [(k.strip().strip("\"'"), v.strip()) for k, v in pairs]


def _value(text: str) -> Any:
    plain = {"true": True, "false": False, "null": None, "~": None}.get(text.lower(), text)
    if plain is not text:
        return plain
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text
