"""Task audit: whether kernels that do not do the work would pass (``prove/audit.py``). It judges the task, not the
kernel, and decides nothing; a reference that fails or gives different results on the same input is an error of the
task.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import TYPE_CHECKING

from ..audit import audit
from ..case import Case, record
from ..finding import Finding
from ..gate import Check, Gate
from ..verdict import GateReport, Role

if TYPE_CHECKING:
    from ..examination import Examination


class TaskAudit(Gate):
    name = "task audit"
    proves = "the task can tell a kernel from zeros, a constant, an input, or one input left out"
    shrinks = False

    def role(self, exam: Examination) -> Role:
        return "advisory"

    def cases(self, exam: Examination) -> Iterable[Case]:
        return ()

    def check(self, exam: Examination, case: Case) -> Check:
        """Replay: the audit again, at whatever seed it has now."""
        seen = audit(exam)[0].passing
        return Check(cls="policy", summary=_summary(seen)) if seen else Check()

    def run(self, exam: Examination) -> GateReport:
        """The audit as a report. ``exam.memory["task audit"]`` holds the trivial kernels that pass."""
        started = time.monotonic()
        result, case = audit(exam)
        exam.memory[self.name] = result.passing
        findings: tuple[Finding, ...] = ()
        if result.passing:
            found = Finding(
                cls="policy", summary=_summary(result.passing), case=record(case, mode=self.name), gate=self.name,
                expected="a failed comparison", got="a passed one", detail="\n".join(result.passing),
            )  # fmt: skip
            findings = (found.with_id(exam.kernel.sha256(), exam.sheet.sha256()),)
            exam.tensors[findings[0].id] = {"inputs": case.inputs, "state": case.state, "cotangents": {}}
        usual = [w for w in result.usual if w not in result.passing]
        words = [f"{result.tried - len(result.passing)} of {result.tried} trivial kernels fail as they should"]
        words += [f"allclose at 1e-2 would pass {_list(usual)}"] if usual else []
        return GateReport(
            name=self.name, role="advisory", status="fail" if findings else "pass", findings=findings,
            reason=findings[0].summary if findings else "", meaning="; ".join([*words, *result.notes]),
            cases=result.tried, seconds=time.monotonic() - started,
        )  # fmt: skip


def _summary(passing: list[str]) -> str:
    return f"the task's workload can't tell the reference from {_list(passing)}"


def _list(words: list[str]) -> str:
    return ", ".join(words[:3]) + (f" and {len(words) - 3} more" if len(words) > 3 else "")


GATE = TaskAudit()
