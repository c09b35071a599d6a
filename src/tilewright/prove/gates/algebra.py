"""Algebra: kernel and reference are the same formula.

One call of each is traced and both traces are evaluated in the same number systems. In a finite field equal formulas
agree on every draw and different ones practically never do, whatever the size of the difference: a term of 1e-6 shows
as surely as one of 1. Where the field does not reach (or knows a law too few), both are compared in real arithmetic
over hostile inputs. What differs is driven to a concrete input and replayed on the real kernel; only then it is
*wrong*; without one it *deviates*, which rejects where the contract says ``algebra: exact``. It proves nothing about
rounding, races, or other sizes and paths than those traced. Sources: Mirage (OSDI 2025); Li & Wu (ITCS 2026);
Schwartz (1980), Zippel (1979).
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from ...errors import TilewrightError, Unsupported
from ...ir.domains.symbolic_words import Words
from .. import witness
from ..case import Case
from ..child.algebra_session import AlgebraSession
from ..equivalence import Agreement, Difference
from ..gate import Check, Gate, Tally
from ..traced_calls import recipes, traces, with_parameters
from ..verdict import Claim, GateReport, Role
from .gradients import with_state

if TYPE_CHECKING:
    from ..examination import Examination

DRAWS = 3
WORK = 25_000_000  # elements, as number_systems.Draw counts them: what decides how many cases are looked at
SECONDS, LAUNCH_S, LOOK_S, CLIMB_S = 20.0, 60.0, 20.0, 15.0  # backstops: what they cut off is said
EQUAL_REAL = 1e-12
FEW = 20
SUSPECTS, ENCLOSED = 8, 12
LONGEST = 320


@dataclass
class Notes:
    """What one run of the gate gathers, kept in ``exam.memory``."""

    child: AlgebraSession | None = None
    in_field: list[str] = field(default_factory=list)
    in_real: list[str] = field(default_factory=list)
    starts: int = 0
    worst: float = 0.0
    work: int = 0
    clock: str = ""
    dismissed: int = 0
    enclosed: int = 0
    widest: float = 0.0
    open: str = ""
    reasons: list[str] = field(default_factory=list)
    conditions: set[str] = field(default_factory=set)
    assumptions: set[str] = field(default_factory=set)
    functions: set[str] = field(default_factory=set)


class Witnessed(Gate):
    """A witness before the real kernel: what shrinking and confirming call."""

    name = "algebra"

    def check(self, exam: Examination, case: Case) -> Check:
        return exam.judge(case, exam.run(case))


class Algebra(Gate):
    name = "algebra"
    proves = "kernel and reference are the same formula: evaluated in a finite field and in real arithmetic"
    shrinks = False

    def role(self, exam: Examination) -> Role:
        return "deciding" if exam.contract.algebra == "exact" else "advisory"

    def absent(self, exam: Examination) -> str:
        if exam.kernel.language not in ("triton", "torch"):
            return f"{exam.kernel.language} kernels can't be traced"
        if exam.contract.random:
            return "results are random by contract"
        if exam.contract.postcondition != "equal":
            return f"the contract asks for '{exam.contract.postcondition}', not for equality"
        return ""

    def cases(self, exam: Examination) -> Iterable[Case]:
        for recipe in recipes(exam):
            try:
                yield with_state(with_parameters(exam, exam.make(recipe)))
            except TilewrightError:
                continue

    def run(self, exam: Examination) -> GateReport:
        """Case by case until one differs, none is left, or enough work is done (or, as a backstop, the time is up)."""
        started = time.monotonic()
        role = self.role(exam)
        if reason := self.absent(exam):
            return GateReport(name=self.name, role=role, status="not applicable", reason=reason)
        tally = Tally()
        exam.memory[self.name] = notes = Notes()
        try:
            for case in self.cases(exam):
                if notes.work > WORK:
                    break
                if time.monotonic() - started > SECONDS and (tally.cases or tally.silent):
                    notes.clock = f"stopped by the clock after {tally.cases + len(tally.silent)} of the sizes"
                    break
                exam.progress(self.name, tally.cases)
                result = self.check(exam, case)
                if result.silent or result.skipped:
                    tally.silent.append(result.silent or result.skipped)
                    continue
                tally.cases += 1
                if result.failed:
                    role = self._found(exam, case, result, tally, role)
                    break
        finally:
            if notes.child is not None:
                notes.child.close()
                notes.child = None
        if tally.cases and tally.silent and not tally.findings:  # what was not reached lowers nothing that was
            notes.reasons += tally.silent
            tally.silent = []
        return self._report(exam, tally, role, time.monotonic() - started)

    def _found(self, exam: Examination, case: Case, result: Check, tally: Tally, role: Role) -> Role:
        """A difference: driven to a witness if it can be, else told as what it is. Returns the role that it has."""
        shown = exam.memory.pop(f"{self.name} witness", None)
        shown = shown or _witness(exam, case, exam.memory[f"{self.name} search"])
        if shown is not None:
            finding = exam.finding(Witnessed(), *shown)
            at = f" (found through {_short(result.where)})" if _short(result.where) not in result.summary else ""
            tally.findings.append(finding.model_copy(update={
                "detail": f"{result.summary}{at}\n{finding.detail}".strip(), "where": finding.where}))  # fmt: skip
            return "deciding"
        tally.findings.append(exam.finding(self, case, result, decides=role != "advisory"))
        return role

    def check(self, exam: Examination, case: Case) -> Check:
        if case.recipe.options().get("witness"):
            return Witnessed().check(exam, case)
        notes = exam.memory.get(self.name) or Notes()
        exam.memory[self.name] = notes
        try:
            return self._compare(exam, case, notes)
        except Unsupported as e:
            at = f" at {_short(e.where)}" if e.where else ""
            return Check(silent=f"algebra does not reach {e.what}{at}")

    def _compare(self, exam: Examination, case: Case, notes: Notes) -> Check:
        traced = traces(exam, case)
        if traced is None:
            return Check(skipped="no trace: the call fails or the reference refuses")
        if notes.child is None or notes.child.dead:
            notes.child = AlgebraSession(exam.kernel, limits=exam.limits, sandbox=exam.sandbox)
        child = notes.child
        child.pair(traced.kernel.trace or {}, traced.reference.trace or {}, witness.symbolic(case), LAUNCH_S)
        if (why := child.explains(traced.results, witness.unit(case))) != "":
            return Check(silent=f"the trace does not explain the result: {why}")
        seeds = [exam.seed_for("field", str(case), i) % (1 << 62) for i in range(DRAWS)]
        seen = child.field(seeds)
        notes.work += seen.work
        notes.conditions |= {_short(c) for c in seen.conditions}
        notes.assumptions |= {f"{what} ({_short(where)})" for where, what in seen.assumptions}
        notes.functions |= set(seen.functions)
        if seen.status == "equal":
            notes.in_field.append(str(case))
            return self._branches(exam, case, child)
        checked = self._in_real(exam, case, child, seen, notes)
        if (
            checked.failed
            and traced.branches
            and not witness.replayed(exam, child, case, exam.memory[f"{self.name} search"])
        ):
            return Check(silent="the call takes another path on other values")
        return checked

    def _branches(self, exam: Examination, case: Case, child: AlgebraSession) -> Check:
        """Equal almost everywhere; and where a comparison comes out as it hardly ever does?"""
        found = witness.flipped(exam, child, case)
        if found is None:
            return Check()
        trial, result, where = found
        exam.memory[f"{self.name} witness"] = trial, result
        return replace(result, where=where, summary="another formula than the reference's once the comparison at "
                       f"{_short(where)} comes out the other way")  # fmt: skip

    def _in_real(self, exam: Examination, case: Case, child: AlgebraSession, seen: Agreement, notes: Notes) -> Check:
        most = FEW if notes.in_real else witness.STARTS
        search = witness.look(exam, child, case, LOOK_S, most)
        exam.memory[f"{self.name} search"] = search
        worst: Difference | None = search.worst
        why = (
            f"{seen.reason}{f' at {_short(seen.where)}' if seen.where else ''}" if seen.status == "unsupported" else ""
        )
        sure = ""
        if search.worst.relative > EQUAL_REAL:
            looked, undecided, worst = witness.confirmed(child, search, EQUAL_REAL, SUSPECTS)
            if worst is None and undecided:
                worst = search.worst
            elif worst is None:
                notes.dismissed += looked
            else:
                sure = " (enclosed: it is no rounding)"
        if search.worst.relative <= EQUAL_REAL or worst is None:
            if not search.compared:
                return Check(silent=why or "nothing to compare in real arithmetic")
            if search.unsteady:
                return Check(silent=f"{search.unsteady} integers differ where an input's last bit decides them")
            if search.starts < most:
                why = why or f"{seen.count} of {seen.total} elements differ at {_short(seen.where)}"
                return Check(silent=f"only {search.starts} of {most} starts before the clock ended it (field: {why})")
            notes.in_real.append(str(case))
            notes.starts = max(notes.starts, search.starts)
            notes.worst = max(notes.worst, min(search.worst.relative, EQUAL_REAL))
            notes.reasons.append(why or "the field knows too few laws of what differs there")
            self._enclose(exam, case, child, notes)
            return Check() if child.dead else self._branches(exam, case, child)
        return self._difference(case, child, seen, search, worst, sure)

    def _enclose(self, exam: Examination, case: Case, child: AlgebraSession, notes: Notes) -> None:
        """One element on each of some hostile starts, enclosed."""
        chosen = witness.starts(exam, case, ENCLOSED if not notes.enclosed else 1)
        picks = [int(exam.seed_for("enclosed", i) % 65521) for i in range(len(chosen))]
        try:
            found = child.enclose(chosen, picks=picks)
        except Unsupported as why:  # it takes nothing from what was compared
            notes.open = notes.open or why.what
            return
        for e in found:
            if e.status == "equal":
                notes.enclosed += 1
                notes.widest = max(notes.widest, e.relative)
            else:
                notes.open = notes.open or e.reason

    def _difference(self, case: Case, child: AlgebraSession, seen: Agreement, search: witness.Search,
                    worst: Difference, sure: str) -> Check:  # fmt: skip
        """What differs, in words where they can be found, and by how much."""
        many = f"{seen.count} of {seen.total} elements differ in the field; " if seen.status == "different" else ""
        told = _words(case, child, search, worst)
        at = f" ({_short(told.where)})" if told.where else ""
        size = (
            f"{many}largest relative difference found in real arithmetic {worst.relative:.2g} at "
            f"{worst.output}{worst.index}, {search.starts} starts{sure}"
        )
        long = len(told.text) > LONGEST
        return Check(
            cls="deviates", where=worst.where or seen.where, error=worst.relative,
            summary=f"another formula than the reference's: {f'{told.text}{at}; ' if told.text and not long else ''}{size}",
            expected=f"{worst.reference:.17g}", got=f"{worst.kernel:.17g}", detail=f"{told.text}{at}" if long else "",
        )  # fmt: skip

    def claims(self, exam: Examination, tally: Tally) -> tuple[Claim, ...]:
        notes: Notes = exam.memory[self.name]
        extra = f"; on the path taken at {', '.join(sorted(notes.conditions))}" if notes.conditions else ""
        extra += f"; {notes.clock}" if notes.clock else ""
        extra += f"; assuming {', '.join(sorted(notes.assumptions))}" if notes.assumptions else ""
        made = []
        if notes.in_field:
            made.append(Claim(kind="algebra", domain=f"all values, at {'; '.join(notes.in_field)}{extra}",
                              strength=f"{DRAWS} draws in a field of 23 bits, {_bound(notes.functions)}"))  # fmt: skip
        if notes.in_real:
            made.append(Claim(kind="real", domain=f"hostile values, at {'; '.join(notes.in_real)}{extra}",
                              strength=f"{notes.starts} starts, largest relative difference {notes.worst:.1g}"
                              f"{_enclosed(notes)} (the field does not decide: {notes.reasons[0]})"))  # fmt: skip
        return tuple(made)

    def meaning(self, exam: Examination, tally: Tally) -> str:
        notes: Notes = exam.memory[self.name]
        if tally.findings:
            return tally.findings[0].cls
        parts = [f"{len(notes.in_field)} in the field"] * bool(notes.in_field)
        parts += [f"{len(notes.in_real)} in real arithmetic"] * bool(notes.in_real)
        return f"equal at {' and '.join(parts)}" if parts else ""


def _enclosed(notes: Notes) -> str:
    """What enclosures say beside float64."""
    parts = []
    if notes.enclosed:
        parts.append(f"{notes.enclosed} elements of hostile starts enclosed: equal to {max(notes.widest, 1e-300):.0e}")
    elif notes.open:
        parts.append(f"not enclosed: {notes.open}")
    if notes.dismissed:
        parts.append(f"{notes.dismissed} differences in float64 enclosed: none is one")
    return "".join(f", {p}" for p in parts)


def _words(case: Case, child: AlgebraSession, search: witness.Search, worst: Difference) -> Words:
    """The first terms that differ: on the case's own inputs, which are generic, else where the difference was seen."""
    index = worst.index or []
    seen = next((inputs for d, inputs in search.suspects if d.start == worst.start), None)
    for inputs in (witness.symbolic(case), seen):
        if inputs is not None and worst.output:
            try:
                told = child.words(inputs, worst.output, index)
            except Unsupported:
                continue
            if told.text:
                return told
    return Words("")


EXP = {"exp", "exp2", "exp10", "expm1", "sigmoid", "tanh", "sinh", "cosh"}
EASY = {"add", "sub", "mul", "div", "neg", "fma", "rcp", "dot"}


def _bound(functions: set[str]) -> str:
    """What is proved of a wrong agreement."""
    if functions & EXP:
        return "exp: no proved bound"
    odd = sorted(functions - EASY)
    rest = f", {', '.join(odd)} by their laws only" if odd else ""
    return f"wrong with probability at most degree / 4194143 a draw{rest}"


def _witness(exam: Examination, case: Case, search: witness.Search) -> tuple[Case, Check] | None:
    """A concrete input on which the real kernel is wrong: among the starts, else by ascent."""
    notes: Notes = exam.memory["algebra"]
    child = None if notes.child is None or notes.child.dead else notes.child
    shown = witness.replayed(exam, child, case, search)
    if shown is not None or child is None:
        return shown
    witness.climb(exam, child, case, search, CLIMB_S)
    return witness.replayed(exam, child, case, search)


def _short(where: str) -> str:
    return where.rpartition("/")[2]


GATE = Algebra()
