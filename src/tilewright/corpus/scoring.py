"""Score the verifier on mutants: which of them it rejects. Resumable, through the ledger, as an audit is."""

from __future__ import annotations

import hashlib
import tempfile
import tomllib
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..audit import Pair, Row, audit
from ..errors import UserError
from .labels import read_labels
from .mutants import Mutant, mutants

LIST = "equivalent.toml"


@dataclass
class Scored:
    """Every mutant with what became of it (``killed``, ``survived``, ``unsettled``, ``equivalent``), and by which gate or
    why."""

    results: list[tuple[Mutant, str, str]] = field(default_factory=list)

    def by_kind(self) -> dict[str, Counter[str]]:
        """Counts of each kind of mutation."""
        table: dict[str, Counter[str]] = defaultdict(Counter)
        for m, what, _ in self.results:
            table[m.kind][what] += 1
        return dict(table)

    def left(self, what: str) -> list[tuple[Mutant, str]]:
        """Mutants that became ``what``, with the reason."""
        return [(m, why) for m, w, why in self.results if w == what]

    @property
    def exit_code(self) -> int:
        """1 if a mutant was accepted."""
        return 1 if self.left("survived") else 0

    def data(self) -> dict[str, Any]:
        """As JSON."""
        results = [{"mutant": m.key, "kind": m.kind, "result": what, "why": why} for m, what, why in self.results]
        return {"by_kind": {k: dict(v) for k, v in self.by_kind().items()}, "results": results}


def choose(many: list[Mutant], count: int) -> list[Mutant]:
    """``count`` of them, the same ones each time: one kind after the other, within a kind by hash."""
    groups: dict[str, list[Mutant]] = defaultdict(list)
    for m in sorted(many, key=lambda m: hashlib.sha256(m.key.encode()).hexdigest()):
        groups[m.kind].append(m)
    picked: list[Mutant] = []
    while len(picked) < count and any(groups.values()):
        for kind in sorted(groups, key=lambda k: hashlib.sha256((many[0].kernel + k).encode()).hexdigest()):
            if groups[kind] and len(picked) < count:
                picked.append(groups[kind].pop(0))
    return picked


def chosen(folder: Path, *, each: int, only: str = "", every: int = 1) -> list[Mutant]:
    """``each`` mutants of every n-th right Python kernel below ``folder`` whose name contains ``only``."""
    rights = [p for p, label in read_labels(folder) if label.right and p.kernel.suffix == ".py" and only in p.name]
    if not rights:
        raise UserError(f"no right Python kernel below '{folder}' has '{only}' in its name",
                        remedy="leave out --only, or give a part of a name such as 'softmax'")  # fmt: skip
    return [m for p in rights[::every] for m in choose(mutants(p.name, p.problem, p.kernel.read_text()), each)]


def equivalent(folder: Path) -> dict[str, str]:
    """Mutants known to change nothing that can be observed, with the reason."""
    path = folder / LIST
    return tomllib.loads(path.read_text()) if path.is_file() else {}


def score(
    many: list[Mutant], known: dict[str, str], *, notice: Callable[[Row, bool], None] | None = None, **options: Any
) -> Scored:  # fmt: skip
    """Check the mutants, but for ``known`` equivalent ones; options as of ``audit``, which resumes where it was stopped."""
    todo = {m.key: m for m in many if m.key not in known}
    became: dict[str, tuple[str, str]] = {}
    with tempfile.TemporaryDirectory(prefix="tw-mutants-") as scratch:
        pairs = [_pair(m, Path(scratch)) for m in todo.values()]
        for row in audit(pairs, notice=notice, **options).rows if pairs else []:
            became[row.pair.name] = _became(row)
    return Scored([(m, *(became.get(m.key) or ("equivalent", known[m.key]))) for m in many])


def _pair(m: Mutant, scratch: Path) -> Pair:
    """The mutant in a folder of its own, under the kernel's file name."""
    folder = scratch / hashlib.sha256(m.key.encode()).hexdigest()[:16]
    folder.mkdir()
    path = folder / Path(m.kernel).name
    path.write_text(m.text)
    return Pair(m.key, m.problem, path)


def _became(row: Row) -> tuple[str, str]:
    if row.verdict is None:
        return "killed", f"error: {row.error.splitlines()[0]}"
    if row.word == "reject":
        gates = (g for g in row.verdict.gates if g.role != "advisory" and any(f.replays for f in g.findings))
        return "killed", next(gates).name
    return ("survived" if row.word == "accept" else "unsettled"), row.verdict.reason
