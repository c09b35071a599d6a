"""Interface: the kernel loads, can be called as the task calls it, and returns plain tensors of the right structure,
shape and dtype on the given workload.

It proves nothing about values. Source: the failures that every public harness meets first (missing entry point, wrong
signature, tuple for tensor, float32 for float16), and lazy tensor subclasses (a cheat seen on public leaderboards).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from ..case import Case, Recipe
from ..gate import Check, Gate
from ..verdict import Role

if TYPE_CHECKING:
    from ..examination import Examination

NUMBER = re.compile(r"\d+")


class Interface(Gate):
    name = "interface"
    proves = "loads, is callable, returns the right structure, shapes and dtypes"
    plain = True

    def role(self, exam: Examination) -> Role:
        return "core"

    def cases(self, exam: Examination) -> Iterable[Case]:
        first = exam.workload()
        for dtype in exam.dtypes():
            yield exam.make(Recipe(first.model_copy(update={"dtype": dtype}), seed=exam.seed_for("interface", dtype),
                                   extra=(("state", "given"),)))  # fmt: skip

    def check(self, exam: Examination, case: Case) -> Check:
        truth = exam.truth(case)
        if truth.refused is not None:
            return Check(skipped=truth.refused.message)
        outcome = exam.run(case)
        return exam.trouble(outcome) or exam.form(truth, outcome) or Check()

    def same(self, found: Check, smaller: Check) -> bool:
        """In the same words but for numbers: a wrong dtype must not become an error at size 1."""
        return super().same(found, smaller) and NUMBER.sub("", smaller.summary) == NUMBER.sub("", found.summary)


GATE = Interface()
