"""Masked lanes: no result depends on what a load without ``other`` gives where it is masked off.

Triton's language leaves those values undefined. NVIDIA's back end fills in zero, and so do the other gates here; other
back ends leave whatever the register held. This gate computes the launches again with NaN in those lanes (a conspicuous
number in integers): a result that changes with it is right by the back end's courtesy alone. That is a matter of
policy: advisory by default, deciding under ``--strict``. Lanes that a mask throws away later do no harm.
Sources: triton-lang/triton#9917 and #737, pytorch/pytorch#126535, flagos-ai/FlagGems#3716.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from ..case import Case
from ..gate import Check, Gate
from ..verdict import Role
from ._launches import absent, computed, outcome_of, sampled, short

if TYPE_CHECKING:
    from ..examination import Examination


class MaskedLanes(Gate):
    name = "masked lanes"
    proves = "no result depends on masked lanes of a load without 'other'"

    def role(self, exam: Examination) -> Role:
        return "deciding" if exam.strict else "advisory"

    def absent(self, exam: Examination) -> str:
        return absent(exam)

    def cases(self, exam: Examination) -> Iterable[Case]:
        return sampled(exam)

    def check(self, exam: Examination, case: Case) -> Check:
        zero = outcome_of(exam, case)
        places = {short(u["where"]) for launch in computed(zero) for u in launch["undefined"]
                  if u["kind"] == "masked load"}  # fmt: skip
        if not places:
            return Check()
        if exam.truth(case).refused is not None:
            return Check(skipped="the reference refuses")
        if exam.judge(case, zero).failed:
            return Check()
        result = exam.judge(case, exam.run(case, mode="undefined"))
        if not result.failed:
            return Check()
        where = ", ".join(sorted(places)[:4])
        result.cls, result.where = "policy", where
        result.summary = (f"the result depends on lanes that a masked load without 'other' leaves undefined at {where} "
                          f"(0 on NVIDIA): with NaN there, {result.summary}")  # fmt: skip
        return result


GATE = MaskedLanes()
