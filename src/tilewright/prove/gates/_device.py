"""What gates that need a GPU share."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..case import Case, Recipe
from ..gate import Check
from .gradients import differentiable, with_state

if TYPE_CHECKING:
    from ..examination import Examination

NEEDS = "needs a GPU (tilewright check --device cuda)"


def absent(exam: Examination) -> str:
    """Why a device gate does not apply; empty if it does."""
    return "" if exam.place is not None else NEEDS


def backward(exam: Examination) -> tuple[str, ...]:
    """Inputs whose gradients are promised here."""
    if exam.contract.gradients != "promised" or exam.kernel.raw or exam.contract.random:
        return ()
    return differentiable(exam, Recipe(exam.workload()))


def given(exam: Examination, word: str, *, grad: bool = False, **options: Any) -> Case:
    """The given workload with options for the gate."""
    names = backward(exam) if grad else ()
    recipe = Recipe(exam.workload(), seed=exam.seed_for(word), grad=bool(names), wanted=names,
                    extra=tuple(options.items()))  # fmt: skip
    case = exam.make(recipe)
    return with_state(case) if names else case


def prefixed(check: Check, words: str, cls: Any = None) -> Check:
    """A failed check that says under which circumstances it failed."""
    return replace(check, summary=f"{words}: {check.summary}", cls=cls or check.cls) if check.failed else check
