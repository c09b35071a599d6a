"""Load: the same inputs give the same bits while other work keeps the device busy.

Blocks of a launch then start in other orders and at other times than on an idle device, so that results which depend on
the order of arrival (atomics, unordered partial sums, missing barriers) differ between runs. Source: "run the same input
20 times" of every hazard list.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from ..case import Case
from ..gate import Check, Gate, Tally
from ..verdict import Claim, Role
from ._device import absent, given
from .determinism import difference

if TYPE_CHECKING:
    from ..examination import Examination

REPEATS = 20


class Load(Gate):
    name = "load"
    proves = "the same bits again while the device is busy"
    shrinks = False

    def role(self, exam: Examination) -> Role:
        return "deciding" if exam.contract.determinism == "bitwise" else "advisory"

    def absent(self, exam: Examination) -> str:
        return absent(exam) or ("results are random by contract" if exam.contract.random else "")

    def cases(self, exam: Examination) -> Iterable[Case]:
        yield given(exam, "load")
        if (case := given(exam, "load", grad=True)).recipe.grad:
            yield case

    def check(self, exam: Examination, case: Case) -> Check:
        first = exam.run(case)
        if (bad := exam.trouble(first)) is not None:
            return bad
        for i in range(REPEATS):
            again = exam.run(case, stream="load")
            if (bad := exam.trouble(again)) is not None:
                return bad
            if (bad := difference(first, again, f"beside other work (repeat {i + 1} of {REPEATS})")) is not None:
                return bad
        return Check()

    def claims(self, exam: Examination, tally: Tally) -> tuple[Claim, ...]:
        return (
            Claim(kind="device", domain="the given workload", strength=f"same bits {REPEATS} times on a busy device"),
        )


GATE = Load()
