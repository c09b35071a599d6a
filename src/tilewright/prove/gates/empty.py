"""Empty: sizes of 0, where nobody promised them: shown, and deciding nothing.

Where the contract promises empty inputs the gate ``shapes`` tries them. Source: division by zero, a grid of 0 and an
index of -1 on empty tensors (FlagGems#5501, #6074, #4543).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from .. import sizes
from ..case import Case, Recipe
from ..gate import Check, Gate
from ..verdict import Role
from ._patience import patient

if TYPE_CHECKING:
    from ..examination import Examination


class Empty(Gate):
    name = "empty"
    proves = "right on tensors without elements"

    def role(self, exam: Examination) -> Role:
        return "advisory"

    def absent(self, exam: Examination) -> str:
        if exam.contract.empty == "promised":
            return "promised by the contract: see shapes"
        if exam.contract.empty == "excluded":
            return "the contract excludes empty inputs"
        return "" if exam.sheet.dims else "the task has one shape"

    def cases(self, exam: Examination) -> Iterable[Case]:
        first = exam.workload()
        recipes = [Recipe(first.model_copy(update={"dims": s.dims}), seed=exam.seed_for("empty", s.key()))
                   for s in sizes.empties(exam.sheet, first.dims, beyond=True)]  # fmt: skip
        return patient(exam, recipes, essential=len(recipes), share=0.1)

    def check(self, exam: Examination, case: Case) -> Check:
        result = exam.result(case)
        if result.failed:
            if result.got == "raises":
                return Check(refusal=f"{result.summary} (at {case})")
            result.cls = "policy"
        return result


GATE = Empty()
