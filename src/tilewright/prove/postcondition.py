"""How the values of an outcome are judged, by the contract's postcondition.

* ``equal``: each element within its error budget (``compare.py``).
* ``set_equal``: the same after sorting along the last axis (the order of equals, or of a selection, is free).
* ``checker``: the problem's own ``check_implementation`` decides, run in the reference's child.
* ``distribution``: the reference draws random numbers. Kernel and reference are run under the same number of seeds, and
  each element's mean and mean square are compared by Welch's statistic; what never varies in the reference must be equal.
  A bias of about ``THRESHOLD / sqrt(RUNS)`` standard deviations in one element is caught, a smaller one that all elements
  share by the test over all of them.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import torch

from ..task.tensors import TensorSpec
from . import judging
from .case import Case
from .child.session import Outcome
from .gate import Check
from .judging import Truth

if TYPE_CHECKING:
    from .examination import Examination

RUNS = 24
THRESHOLD = 7.0
POOLED = 5.0


def judge(exam: Examination, case: Case, truth: Truth, outcome: Outcome) -> Check:
    """The values of an outcome that came and has the right form."""
    mutated = [n for n, s in exam.sheet.inputs.items() if isinstance(s, TensorSpec) and s.mutated]
    match exam.contract.postcondition:
        case "checker":
            return _checker(exam, case, outcome)
        case "distribution":
            return _distribution(exam, case, truth, outcome)
        case "set_equal":
            return judging.values(case, _sorted(truth), replace(outcome, outputs=_sort_all(outcome.outputs)),
                                  exam.contract.tolerance, mutated)  # fmt: skip
    return judging.values(case, truth, outcome, exam.contract.tolerance, mutated)


def _sort_all(outputs: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    return {n: t if t.dim() == 0 else t.sort(-1).values for n, t in outputs.items()}


def _sorted(truth: Truth) -> Truth:
    base = None if truth.baseline is None else _sort_all(truth.baseline)
    return replace(truth, oracle=_sort_all(truth.oracle), baseline=base, sensitivity={})


def _checker(exam: Examination, case: Case, outcome: Outcome) -> Check:
    ok, message = exam.reference.check(case.inputs, outcome)
    if ok is None:
        return Check(silent=f"the problem's checker gives no answer: {message}")
    if ok:
        return Check()
    return Check(cls="wrong", summary=f"the problem's checker refuses it: {message or 'no reason given'}", expected="accepted",
                 got=message)  # fmt: skip


def _distribution(exam: Examination, case: Case, truth: Truth, outcome: Outcome) -> Check:
    """Same seed, same numbers: enough. Otherwise as many runs of both, and their statistics."""
    mutated: list[str] = []
    plain = judging.values(case, truth, outcome, exam.contract.tolerance, mutated)
    if not plain.failed:
        return plain
    ours: dict[str, list[torch.Tensor]] = {n: [] for n in outcome.outputs}
    theirs: dict[str, list[torch.Tensor]] = {n: [] for n in truth.oracle}
    for i in range(RUNS):
        seed = exam.seed_for("distribution", case.recipe.seed, i) % (1 << 31)
        got = exam.run(case, seed=seed)
        if (bad := exam.trouble(got)) is not None:
            return bad
        want = exam.reference.run(case.inputs, case.recipe.workload, state=case.state, seed=seed ^ 0x5BD1)
        if not want.ok:
            return Check(skipped=f"the reference refuses: {want.trouble}")
        for n in ours:
            ours[n].append(got.outputs[n].double())
            theirs[n].append(want.outputs[n].double())
    for n in ours:
        if (bad := _differ(n, torch.stack(ours[n]), torch.stack(theirs[n]))) is not None:
            return bad
    return Check()


def _differ(name: str, a: torch.Tensor, b: torch.Tensor) -> Check | None:
    """A Check if two samples (runs first) of one output differ in distribution."""
    if a.numel() == 0:
        return None
    for what, x, y in (("mean", a, b), ("mean square", a.square(), b.square())):
        gap = x.mean(0) - y.mean(0)
        error = ((x.var(0) + y.var(0)) / RUNS).sqrt()
        floor = 1e-5 * (y.mean(0).abs() + y.abs().mean())
        z = gap.abs() / (error + floor).clamp_min(1e-300)
        worst = int(z.reshape(-1).argmax())
        if float(z.reshape(-1)[worst]) > THRESHOLD * math.sqrt(1 + math.log1p(z.numel()) / 16):
            at = judging.compare.position(worst, z.shape)
            return Check(cls="wrong", summary=f"{name}{list(at)}: {what} over {RUNS} seeds is {float(x.mean(0)[at]):.4g}, expected "
                         f"{float(y.mean(0)[at]):.4g}", where=f"{name}{list(at)}", expected=f"{float(y.mean(0)[at]):.4g}",
                         got=f"{float(x.mean(0)[at]):.4g}")  # fmt: skip
        pooled = float(gap.sum().abs() / ((error + floor).square().sum().sqrt() + 1e-300))
        if pooled > POOLED:
            return Check(cls="wrong", summary=f"{name}: {what} over {RUNS} seeds and all elements is {float(x.mean()):.4g}, expected "
                         f"{float(y.mean()):.4g}", where=name, expected=f"{float(y.mean()):.4g}", got=f"{float(x.mean()):.4g}")  # fmt: skip
    return _same_zeros(name, a, b)


def _same_zeros(name: str, a: torch.Tensor, b: torch.Tensor) -> Check | None:
    """How often elements are exactly zero (dropped), and whether neighbours are dropped together."""
    p, q = (a == 0).double(), (b == 0).double()
    n = max(p.numel(), 1)
    spread = math.sqrt(max(float(q.mean()) * (1 - float(q.mean())), 1e-12) * 2 / n)
    if abs(float(p.mean() - q.mean())) > POOLED * spread + 1e-9:
        return Check(cls="wrong", summary=f"{name}: {float(p.mean()):.2%} of the elements are zero, expected {float(q.mean()):.2%}",
                     where=name, expected=f"{float(q.mean()):.2%} zero", got=f"{float(p.mean()):.2%} zero")  # fmt: skip
    return None
