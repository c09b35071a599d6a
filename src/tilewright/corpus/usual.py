"""The field's usual check, for comparison: three random inputs of one shape, ``allclose`` at 1e-2. Run in the same sealed
children, so that the numbers beside ours are measured and not quoted."""

from __future__ import annotations

import time
from dataclasses import replace

import torch

from ..audit import Pair
from ..errors import TilewrightError
from ..kernel import read
from ..prove.case import Case, Recipe
from ..prove.examination import Examination
from ..prove.examine import open_task

TOLERANCE = 1e-2
DRAWS = 3


def usual_check(pair: Pair, seed: int | None = None) -> tuple[bool, float, str]:
    """Whether the usual check passes, its seconds, and why not. ``seed``: of the inputs, else a secret one."""
    started = time.monotonic()
    try:
        sheet, session = open_task(str(pair.problem))
        exam = Examination(sheet, read(str(pair.kernel)), session, seed=seed)
        try:
            ok, why = _passes(exam)
        finally:
            exam.close()
            exam.reference.close()
    except TilewrightError as e:
        return False, time.monotonic() - started, str(e)
    return ok, time.monotonic() - started, why


def _passes(exam: Examination) -> tuple[bool, str]:
    grad = exam.contract.gradients == "promised"
    wanted = tuple(n for n, s in exam.sheet.inputs.items() if getattr(s, "requires_grad", False)) if grad else ()
    for i in range(DRAWS):
        case = exam.make(Recipe(exam.workload(), seed=exam.seed_for("usual", i)))
        if wanted:
            case = _uniform_backward(exam, case, wanted)
        truth = exam.truth(case)
        if truth.refused is not None:
            return False, f"the reference refuses: {truth.refused}"
        outcome = exam.run(case, poison=None, guard=0)
        if not outcome.ok:
            return False, str(outcome.trouble)
        pairs = [(outcome.outputs.get(n), y) for n, y in (truth.baseline or truth.oracle).items()]
        pairs += [(outcome.grads.get(n), g) for n, g in (truth.baseline_grads or {}).items()]
        for got, want in pairs:
            if got is None or got.shape != want.shape or not _close(got, want):
                return False, "allclose is false"
    return True, ""


def _uniform_backward(exam: Examination, case: Case, wanted: tuple[str, ...]) -> Case:
    """As ``out.sum().backward()`` does: an upstream gradient of ones."""
    truth = exam.truth(case)
    ones = {n: torch.ones_like(y) for n, y in (truth.baseline or truth.oracle).items() if y.is_floating_point()}
    recipe = replace(case.recipe, grad=True, wanted=wanted)
    return replace(case, recipe=recipe, cotangents=ones)


def _close(a: torch.Tensor, b: torch.Tensor) -> bool:
    wide = torch.complex128 if b.is_complex() else torch.float64
    return torch.allclose(a.to(wide), b.to(wide), rtol=TOLERANCE, atol=TOLERANCE, equal_nan=True)
