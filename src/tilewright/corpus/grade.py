"""Grade the verifier: every labelled kernel in both modes, kills and false alarms counted per gate."""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..audit import Pair, Row, audit
from ..errors import UserError
from .labels import Label, read_labels
from .usual import usual_check

MODES = ("default", "strict")


@dataclass
class Grade:
    """One kernel in one mode. ``kind``: ``killed``, ``missed``, ``open`` (no gate claims to see it yet), ``right``,
    ``false alarm``, ``unsettled`` (no verdict where one was expected), ``other gate`` (killed, not by the expected one)."""

    pair: Pair
    label: Label
    mode: str
    verdict: str
    gate: str
    kind: str
    seconds: float
    reason: str = ""
    worst: float = 0.0

    @property
    def half(self) -> str:
        """``calibration`` or ``report``: the tolerance was set on one half of the corpus and is reported on the other."""
        return ("calibration", "report")[hashlib.sha256(self.pair.name.encode()).digest()[0] % 2]

    @property
    def lost(self) -> bool:
        """Fails the corpus."""
        return self.kind in ("missed", "false alarm", "unsettled")


@dataclass
class Graded:
    """All grades, and what the usual check said: name to (passes, seconds)."""

    grades: list[Grade] = field(default_factory=list)
    usual: dict[str, tuple[bool, float]] = field(default_factory=dict)

    @property
    def exit_code(self) -> int:
        return 1 if any(g.lost for g in self.grades) else 0

    def counts(self, mode: str) -> Counter[str]:
        return Counter(g.kind for g in self.grades if g.mode == mode)

    def by_gate(self, mode: str) -> dict[str, Counter[str]]:
        """Kills and false alarms of each gate."""
        table: dict[str, Counter[str]] = defaultdict(Counter)
        for g in self.grades:
            if g.mode == mode and g.gate:
                table[g.gate][g.kind] += 1
        return dict(table)

    def kill_rate(self, mode: str) -> float:
        """Killed among the faults that need neither IR nor a GPU; 1.0 if there are none."""
        mine = [g for g in self.grades if g.mode == mode and g.label.expected(mode) == "reject" and not g.label.needs]
        return sum(g.kind in ("killed", "other gate") for g in mine) / len(mine) if mine else 1.0

    def tolerance(self) -> dict[str, dict[str, float]]:
        """Per half: how far right kernels go (error over budget, at most 1) and how little inaccurate faults exceed it."""
        table = {}
        for half in ("calibration", "report"):
            mine = [g for g in self.grades if g.half == half]
            right = [g.worst for g in mine if g.kind == "right"]
            wrong = [g.worst for g in mine if g.kind in ("killed", "other gate") and g.worst > 1]
            table[half] = {"right_at_most": max(right, default=0.0), "fault_at_least": min(wrong, default=0.0)}
        return table

    def data(self) -> dict[str, Any]:
        """As JSON."""
        rows = [{"name": g.pair.name, "mode": g.mode, "expected": g.label.expected(g.mode), "verdict": g.verdict,
                 "gate": g.gate, "kind": g.kind, "seconds": round(g.seconds, 3), "family": g.label.family,
                 "needs": g.label.needs, "reason": g.reason, "usual": self.usual.get(g.pair.name, (None, 0))[0]}
                for g in self.grades]  # fmt: skip
        faults = list(dict.fromkeys(g.pair.name for g in self.grades if g.label.expected("default") == "reject"))
        return {
            "rows": rows, "modes": {m: {**self.counts(m), "kill_rate": self.kill_rate(m)} for m in MODES},
            "tolerance": self.tolerance(),
            "by_gate": {m: {k: dict(v) for k, v in self.by_gate(m).items()} for m in MODES},
            "usual": {"faults": len(faults), "passed": sum(self.usual.get(n, (False, 0))[0] for n in faults),
                      "right_refused": sum(not ok for n, (ok, _) in self.usual.items() if n not in faults)},
        }  # fmt: skip


def grade(
    folder: Path, *, jobs: int = 2, ledger: str | None = None, modes: tuple[str, ...] = MODES, only: str = "",
    every: int = 1, usual: bool = True, fresh: bool = False, notice: Callable[[str, str], None] | None = None,
    **options: Any,
) -> Graded:  # fmt: skip
    """Check the labelled kernels below ``folder`` whose name contains ``only``, or every n-th of them; resumes an unfinished
    run."""
    labelled = [(p, lab) for p, lab in read_labels(folder) if only in p.name][::every]
    if options.get("device", "cpu") != "cpu":
        labelled = [(p, lab) for p, lab in labelled if p.kernel.suffix != ".c"]
    if not labelled:
        raise UserError(f"no kernel below '{folder}' " + (f"has '{only}' in its name" if only else "can be graded here"),
                        remedy="leave out --only, or give a part of a name such as 'softmax'")  # fmt: skip
    labels = {p.name: lab for p, lab in labelled}
    notice = notice or (lambda what, name: None)
    done = Graded()
    pairs = [p for p, _ in labelled]
    if usual:
        with ThreadPoolExecutor(max_workers=jobs) as pool:
            for pair, (ok, seconds, _) in zip(
                pairs, pool.map(lambda p: usual_check(p, options.get("seed")), pairs), strict=True
            ):
                done.usual[pair.name] = (ok, seconds)
                notice("usual check", pair.name)
    for mode in modes:
        rows = audit(pairs, jobs=jobs, ledger=ledger, strict=mode == "strict", fresh=fresh,
                     notice=lambda row, resumed, mode=mode: notice(mode, row.pair.name), **options).rows  # type: ignore[misc]  # fmt: skip
        done.grades += [judge(row, labels[row.pair.name], mode) for row in rows]
    return done


def judge(row: Row, label: Label, mode: str) -> Grade:
    """The grade of one result."""
    gate = ""
    if row.verdict is not None and row.word == "reject":
        gate = next(g.name for g in row.verdict.gates if g.role != "advisory" and any(f.replays for f in g.findings))
    expected = label.expected(mode)
    if expected == "reject":
        if row.word == "reject":
            kind = "killed" if not label.gates or gate in label.gates else "other gate"
        else:
            kind = "open" if label.needs or label.open else "missed"
    elif row.word == "reject":
        kind = "false alarm"
    else:
        kind = "right" if row.word == expected else "unsettled"
    reason = row.verdict.reason if row.verdict else row.error
    seconds = row.verdict.seconds if row.verdict else 0.0
    return Grade(row.pair, label, mode, row.word, gate, kind, seconds, reason, _worst(row))


def _worst(row: Row) -> float:
    """Error over budget: of the finding that rejects (where it is a number), else the largest that passed."""
    if row.verdict is None:
        return 0.0
    for f in row.verdict.findings:
        if f.cls == "inaccurate" and f.largest_error and f.budget:
            return f.largest_error / f.budget
    return max((g.worst for g in row.verdict.gates if g.role != "advisory"), default=0.0)
