"""Compare two versions of a kernel: both examined with every gate on the same secret seed, gate beside gate."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal

from .api import examine_and_record
from .prove.verdict import GateReport, Verdict
from .task.tensors import Model

Change = Literal["same", "worse", "better", "open", "settled", "less accurate", "more accurate"]


class GateChange(Model):
    """One gate, before and after."""

    gate: str
    old: str
    new: str
    change: Change
    note: str = ""


class Compared(Model):
    """The whole answer of ``compare``."""

    old: Verdict
    new: Verdict
    changes: tuple[GateChange, ...]
    answer: Literal["no regression", "regression", "open"]

    @property
    def exit_code(self) -> int:
        return {"no regression": 0, "regression": 1, "open": 3}[self.answer]


def compare(
    problem: str, old: str, new: str, *, seed: int | None = None, progress: Any = None, **options: Any
) -> Compared:
    """Examine both versions on the same cases. An advisory gate that got worse is shown and is a regression too: what
    worked for users of OLD must not break silently."""
    seed = secrets.randbits(62) if seed is None else seed

    @contextmanager
    def shown(which: str) -> Iterator[Any]:
        yield (lambda gate, cases: progress(f"{which}: {gate}", cases)) if progress else None

    first = examine_and_record(problem, old, every=True, seed=seed, progress=shown("old"), **options).verdict
    second = examine_and_record(problem, new, every=True, seed=seed, progress=shown("new"), **options).verdict
    after = {g.name: g for g in second.gates}
    changes = tuple(_change(g, after[g.name]) for g in first.gates if g.name in after)
    kinds = {c.change for c in changes}
    answer: Literal["no regression", "regression", "open"] = \
        "regression" if "worse" in kinds else "open" if "open" in kinds else "no regression"  # fmt: skip
    return Compared(old=first, new=second, changes=changes, answer=answer)


def _change(a: GateReport, b: GateReport) -> GateChange:
    rank = {"pass": 2, "not applicable": 2, "inconclusive": 1, "fail": 0}
    change: Change = "same"
    if b.status == "fail" and a.status != "fail":
        change = "worse"
    elif a.status == "fail" and b.status != "fail":
        change = "better" if b.status != "inconclusive" else "open"
    elif rank[b.status] < rank[a.status]:
        change = "open"
    elif rank[b.status] > rank[a.status]:
        change = "settled"
    note = b.findings[0].summary if b.findings else b.reason
    return GateChange(gate=a.name, old=a.status, new=b.status, change=change, note=note)
