"""Gate: one property of a kernel, checked case by case.

A gate is one file in ``gates/`` with one subclass of ``Gate`` named ``GATE = TheClass()``. It says on which cases it looks
(``cases``) and what must hold on one of them (``check``); running, shrinking, replaying and reporting are the same for
all and stand here. A gate that can't follow that pattern overrides ``run``.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ..errors import Unsupported
from .case import Case
from .finding import Class, Finding
from .verdict import Claim, GateReport, Role, Status

if TYPE_CHECKING:
    from .examination import Examination


@dataclass
class Check:
    """What one case showed. ``fault``: class and summary if the property does not hold. ``ratio``: error over budget.
    ``silent``: why the case says nothing (it is counted, and if all cases are silent the gate is inconclusive)."""

    cls: Class | None = None
    summary: str = ""
    where: str = ""
    expected: str = ""
    got: str = ""
    error: float | None = None
    detail: str = ""
    ratio: float = 0.0
    silent: str = ""
    skipped: str = ""
    refusal: str = ""

    @property
    def failed(self) -> bool:
        return self.cls is not None


@dataclass
class Tally:
    """Running totals of a gate."""

    cases: int = 0
    skipped: int = 0
    worst: float = 0.0
    silent: list[str] = field(default_factory=list)
    refusals: list[str] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    cut: str = ""


class Gate:
    """Base of all gates. ``proves``: one line for tables. ``most``: findings after which the gate stops.
    ``plain``: ``check`` asks for one call of the kernel, without options; so the next case's may begin meanwhile."""

    name = ""
    proves = ""
    most = 1
    shrinks = True
    plain = False

    def role(self, exam: Examination) -> Role:
        """``core``, ``deciding`` or ``advisory`` for this task."""
        raise InternalRole(self.name)

    def absent(self, exam: Examination) -> str:
        """Why the gate does not apply here; empty if it does."""
        return ""

    def cases(self, exam: Examination) -> Iterable[Case]:
        """The cases to look at, telling ones first."""
        raise InternalRole(self.name)

    def check(self, exam: Examination, case: Case) -> Check:
        """Whether the property holds on one case. Also what ``replay`` calls."""
        raise InternalRole(self.name)

    def same(self, found: Check, smaller: Check) -> bool:
        """Whether a smaller case shows the fault that was found."""
        return smaller.cls == found.cls

    def claims(self, exam: Examination, tally: Tally) -> tuple[Claim, ...]:
        """What a pass lets one say."""
        return ()

    def meaning(self, exam: Examination, tally: Tally) -> str:
        """The result in a few words for the table."""
        worst = f", worst error {tally.worst:.2g} of the budget" if tally.worst else ""
        return f"{tally.cases} case{'s' * (tally.cases != 1)}{worst}"

    def run(self, exam: Examination) -> GateReport:
        """All cases until the first fault (or the time is up)."""
        started = time.monotonic()
        role = self.role(exam)
        if reason := self.absent(exam):
            return GateReport(name=self.name, role=role, status="not applicable", reason=reason)
        tally = Tally()
        try:
            for case in self._drawn(exam, tally, started + exam.gate_seconds):
                exam.progress(self.name, tally.cases)
                self._one(exam, case, tally, role)
                if len(tally.findings) >= self.most:
                    break
        except Unsupported as e:
            return GateReport(name=self.name, role=role, status="inconclusive", reason=str(e), cases=tally.cases,
                              seconds=time.monotonic() - started)  # fmt: skip
        finally:
            exam.settle()
        return self._report(exam, tally, role, time.monotonic() - started)

    def _drawn(self, exam: Examination, tally: Tally, deadline: float) -> Iterator[Case]:
        """The cases while there is time. Those of a plain gate are begun one ahead."""
        ahead = self.plain and exam.place is None
        waiting: list[Case] = []
        for case in self.cases(exam):
            if time.monotonic() > deadline and tally.cases:
                tally.cut = f"stopped after {exam.gate_seconds:g} s"
                break
            if ahead:
                exam.begin(case)
            waiting.append(case)
            if len(waiting) > ahead:
                yield waiting.pop(0)
        yield from waiting

    def _one(self, exam: Examination, case: Case, tally: Tally, role: Role) -> None:
        result = self.check(exam, case)
        if result.skipped:
            tally.skipped += 1
            return
        if result.silent:
            tally.silent.append(f"{result.silent} ({case})" if str(case) not in result.silent else result.silent)
            return
        tally.cases += 1
        tally.worst = max(tally.worst, result.ratio if not result.failed else 0.0)
        if result.refusal:
            tally.refusals.append(result.refusal)
        if result.failed:
            tally.findings.append(exam.finding(self, case, result, decides=role != "advisory"))

    def _report(self, exam: Examination, tally: Tally, role: Role, seconds: float) -> GateReport:
        status: Status = "pass"
        reason = tally.cut
        if tally.findings:
            status, reason = "fail", tally.findings[0].summary
        elif not tally.cases and tally.silent:
            status, reason = "inconclusive", tally.silent[0]
        elif not tally.cases and role == "core":
            status, reason = "inconclusive", f"the reference gives no result on any of {tally.skipped} cases"
        elif not tally.cases:
            status, reason = "not applicable", reason or f"no case differs here ({tally.skipped} skipped)"
        elif tally.silent and role == "core":
            status, reason = "inconclusive", tally.silent[0]
        elif tally.silent:
            reason = tally.silent[0]
        if tally.refusals and not tally.findings:
            reason = f"{len(tally.refusals)} refused with a clear error: {tally.refusals[0]}"
        return GateReport(
            name=self.name, role=role, status=status, reason=reason, meaning=self.meaning(exam, tally),
            findings=tuple(tally.findings), claims=self.claims(exam, tally) if status == "pass" else (),
            cases=tally.cases, seconds=seconds, worst=tally.worst,
        )  # fmt: skip


class InternalRole(NotImplementedError):
    """A gate lacks one of its methods."""
