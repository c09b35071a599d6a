"""Findings that only repeat that values are wrong.

Under ``--all`` a kernel with plainly wrong values goes through the later gates too. Where one of those judges values on its
way to another property, it would report the same fault under another name. Such cases are left out; what is independent
of values (an input overwritten, a launch forged) stays.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..case import Case
from ..gate import Check, Gate, Tally
from ..verdict import GateReport, Role

if TYPE_CHECKING:
    from ..examination import Examination

FIRST = ("interface", "values", "shapes")
KEY = "values are wrong"


def note(exam: Examination, report: GateReport) -> None:
    """Remember the first gate that found the values wrong."""
    found = [f for f in report.findings if f.replays]
    if report.name in FIRST and report.status == "fail" and found:
        exam.memory.setdefault(KEY, (report.name, found[0].expected))


class Dependent(Gate):
    """A gate that judges values on its way to another property. ``keeps``: classes of findings that are independent even
    where they come with a wrong value."""

    keeps: tuple[str, ...] = ()

    def independent(self, exam: Examination, result: Check) -> Check:
        """The result, or a skip where it only repeats what an earlier gate found."""
        if not result.failed or KEY not in exam.memory or result.cls in self.keeps:
            return result
        name, expected = exam.memory[KEY]
        again = result.error is not None or (result.expected == expected == "a result")
        return Check(skipped=f"values are wrong (gate {name})") if again else result

    def run(self, exam: Examination) -> GateReport:
        exam.memory.pop("left out", None)
        return super().run(exam)

    def look(self, exam: Examination, case: Case) -> Check:
        """What ``check`` is for other gates."""
        raise NotImplementedError(self.name)

    def check(self, exam: Examination, case: Case) -> Check:
        result = self.independent(exam, self.look(exam, case))
        if "values are wrong" in result.skipped:
            exam.memory["left out"] = exam.memory.get("left out", 0) + 1
        return result

    def _report(self, exam: Examination, tally: Tally, role: Role, seconds: float) -> GateReport:
        report = super()._report(exam, tally, role, seconds)
        left = exam.memory.get("left out", 0)
        if not left or tally.findings:
            return report
        why = f"{left} case{'s' * (left != 1)} left out: values are wrong (gate {exam.memory[KEY][0]})"
        if not tally.cases:
            return report.model_copy(update={"status": "not applicable", "reason": why, "claims": ()})
        return report.model_copy(update={"reason": f"{report.reason}; {why}" if report.reason else why, "claims": ()})
