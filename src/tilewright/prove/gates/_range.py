"""Values so far out that the reference itself may leave the range of its dtype, at the end or on its way: then they say
nothing about a kernel."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from ...task.values import DEEP
from ..case import Case

if TYPE_CHECKING:
    from ..examination import Examination

LOST = 0.05  # a baseline that is off by more of the largest element is no guide


def overflow(exam: Examination, case: Case) -> str:
    """Why a case of the families ``DEEP`` is left out; empty if it counts."""
    if case.recipe.family not in DEEP:
        return ""
    truth = exam.truth(case)
    if truth.refused is not None:
        return ""
    if truth.baseline is None:
        return truth.note
    for name, exact in truth.oracle.items():
        plain = truth.baseline[name]
        if plain.is_floating_point() and _lost(exact, plain):
            return f"the reference leaves the range of {plain.dtype} on the way to '{name}'"
    return ""


def _lost(exact: torch.Tensor, plain: torch.Tensor) -> bool:
    """Whether the reference is no longer finite, or in its own dtype no longer near what it is in float64."""
    finite = torch.isfinite(exact)
    if not bool((finite & torch.isfinite(plain)).all()):
        return True
    error = torch.where(finite, (plain.double() - exact).abs(), 0.0)
    return bool(error.numel()) and float(error.max()) > LOST * float(torch.where(finite, exact.abs(), 0.0).max())
