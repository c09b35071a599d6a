"""Metamorphic: the laws that the task declares hold between the kernel's own results.

A law needs no oracle, so it also reaches where the oracle itself is in doubt. Each is tried on the reference first; one
that the reference breaks says nothing. It proves nothing beyond the inputs tried. Protocol and ready-made laws:
``task/laws.py``. Source: metamorphic testing (Chen, Cheung, Yiu, 1998); relations that caught public kernel bugs:
gradient rows of a cross entropy sum to zero, all-zero segment ids equal none, one block equals many.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from .. import sizes
from ..case import Case, Recipe
from ..child.session import Outcome
from ..gate import Check, Gate, Tally
from ..verdict import Claim, Role

if TYPE_CHECKING:
    from ..examination import Examination


class Metamorphic(Gate):
    name = "metamorphic"
    proves = "the laws that the task declares hold between the kernel's own results"

    def role(self, exam: Examination) -> Role:
        return "deciding"

    def absent(self, exam: Examination) -> str:
        return "" if exam.contract.laws else "the task declares no laws"

    def cases(self, exam: Examination) -> Iterable[Case]:
        first = exam.workload()
        planned = [s.dims for s in sizes.plan(exam.sheet, first.dims, most=3, seed=exam.seed_for("laws"))]
        for law in exam.contract.laws:
            for i, dims in enumerate([sizes.small(exam.sheet, first.dims), first.dims, *planned]):
                dtype = exam.dtypes()[i % len(exam.dtypes())]
                w = first.model_copy(update={"dims": dims, "dtype": dtype})
                yield exam.make(Recipe(w, seed=exam.seed_for("laws", law, i), extra=(("law", law),)))

    def check(self, exam: Examination, case: Case) -> Check:
        name = case.recipe.options().get("law", exam.contract.laws[0])
        seed, w = case.recipe.seed % (1 << 31), case.recipe.workload
        own = exam.reference.law(name, case.inputs, w, [], seed=seed, itself=True)
        if own.trouble is not None:
            return Check(silent=f"the law '{name}' can't be tried: {own.trouble.message}")
        if not own.ok:
            return Check(silent=f"the reference itself breaks the law '{name}' {own.message}".rstrip())
        results: list[Outcome] = []
        while True:
            answer = exam.reference.law(name, case.inputs, w, results, seed=seed)
            if answer.trouble is not None:
                return Check(cls="wrong", summary=f"the law '{name}' can't be tried on the kernel's results:"
                             f" {answer.trouble.message}", where=answer.trouble.where)  # fmt: skip
            if answer.ok is not None:
                break
            recipe = replace(case.recipe, grad=bool(answer.gradient), wanted=answer.gradient)
            asked = replace(case, recipe=recipe, inputs=answer.inputs, cotangents=answer.cotangents, changed=True)
            outcome = exam.run(asked)
            if (bad := exam.trouble(outcome)) is not None:
                return bad
            results.append(outcome)
        if answer.ok:
            return Check()
        return Check(
            cls="wrong",
            summary=f"the law '{name}' does not hold",
            where=name,
            detail=answer.message,
            expected=f"'{name}' holds, as for the reference",
            got=f"broken after {len(results)} runs",
        )

    def claims(self, exam: Examination, tally: Tally) -> tuple[Claim, ...]:
        return (
            Claim(kind="sampled", domain="laws: " + ", ".join(exam.contract.laws), strength=f"{tally.cases} cases"),
        )


GATE = Metamorphic()
