"""How the values of an outcome are judged, by the contract's postcondition.

* ``equal``: each element within its error budget (``compare.py``).
* ``set_equal``: the same after sorting along the last axis (the order of equals, or of a selection, is free).
* ``checker``: the problem's own ``check_implementation`` decides, run in the reference's child.
* ``distribution``: the reference draws random numbers. Kernel and reference are run under the same number of seeds, and
  each element's mean and mean square are compared by Welch's statistic; so are the share of zeros, and the share of pairs
  at one distance that are zero together (draws that are not independent). Inputs named ``seed`` are drawn anew for each
  run, and a run at the same seed must repeat.
  A bias of about ``THRESHOLD / sqrt(RUNS)`` standard deviations in one element is caught, a smaller one that all elements
  share by the test over all of them.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch

from . import compare
from .case import Case
from .child.session import Outcome
from .gate import Check
from .judging import Truth

if TYPE_CHECKING:
    from .examination import Examination

RUNS = 24
MOST = 6
LAGS = (1, 2, 3, 4, 7, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096)
THRESHOLD = 7.0
POOLED = 6.5


def judge(exam: Examination, case: Case, truth: Truth, outcome: Outcome) -> Check:
    """The values of an outcome that came and has the right form."""
    match exam.contract.postcondition:
        case "checker":
            return _checker(exam, case, outcome)
        case "distribution":
            return _distribution(exam, case, truth, outcome)
        case "set_equal":
            return exam.values(case, _sorted(truth), replace(outcome, outputs=_sort_all(outcome.outputs)))
    return exam.values(case, truth, outcome)


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
    return Check(
        cls="wrong",
        summary=f"the problem's checker refuses it: {message or 'no reason given'}",
        expected="accepted",
        got=message,
    )


def _distribution(exam: Examination, case: Case, truth: Truth, outcome: Outcome) -> Check:
    """Same seed, same numbers as the reference: enough. Otherwise as many runs of both, and their statistics."""
    if truth.baseline is not None and all(_equal(outcome.outputs[n], y) for n, y in truth.baseline.items()):
        return Check()
    tested = exam.memory.setdefault("distributions", [])
    if len(tested) >= MOST and str(case) not in tested:
        return Check(skipped=f"distributions are compared on {MOST} cases")
    tested.append(str(case))
    ours: dict[str, list[torch.Tensor]] = {n: [] for n in outcome.outputs}
    theirs: dict[str, list[torch.Tensor]] = {n: [] for n in truth.oracle}
    for i in range(RUNS):
        got = exam.run(_reseeded(exam, case, i), seed=_seed(exam, case, i))
        if (bad := exam.trouble(got)) is not None:
            return bad
        other = _reseeded(exam, case, RUNS + i)
        want = exam.reference.run(
            other.inputs, case.recipe.workload, state=case.state, seed=_seed(exam, case, RUNS + i)
        )
        if not want.ok:
            return Check(skipped=f"the reference refuses: {want.trouble}")
        for n in ours:
            ours[n].append(got.outputs[n].double())
            theirs[n].append(want.outputs[n].double())
    for n in ours:
        if (bad := _differ(n, torch.stack(ours[n]), torch.stack(theirs[n]))) is not None:
            return bad
    return _repeats(exam, case, outcome)


def _equal(a: torch.Tensor, b: torch.Tensor) -> bool:
    return a.shape == b.shape and torch.allclose(a.double(), b.double(), rtol=1e-5, atol=1e-8, equal_nan=True)


def _seed(exam: Examination, case: Case, i: int) -> int:
    return exam.seed_for("distribution", case.recipe.seed, i) % (1 << 31)


def seeds(case: Case) -> list[str]:
    """Inputs that are seeds: plain integers with ``seed`` in their name."""
    return [n for n, v in case.inputs.items() if "seed" in n.lower() and isinstance(v, int) and not isinstance(v, bool)]


def _reseeded(exam: Examination, case: Case, i: int) -> Case:
    names = seeds(case)
    return case.with_inputs(**{n: _seed(exam, case, i) for n in names}) if names else case


def _repeats(exam: Examination, case: Case, outcome: Outcome) -> Check:
    """Where the seed is an argument: the same seed gives the same numbers."""
    if not seeds(case):
        return Check()
    again = exam.run(case, fresh=True)
    if (bad := exam.trouble(again)) is not None:
        return bad
    for n, y in outcome.outputs.items():
        if not torch.equal(torch.nan_to_num(y), torch.nan_to_num(again.outputs[n])):
            return Check(cls="wrong", summary=f"{n}: two runs at one seed differ", where=n, expected="the same numbers",
                         got="other numbers")  # fmt: skip
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
        at: Any = compare.position(worst, z.shape)
        if float(z[at]) > THRESHOLD * math.sqrt(1 + math.log1p(z.numel()) / 16) and not bool((x[:, *at] == 0).any()):
            return _says(name, f"{list(at)}: {what} over {RUNS} seeds", float(x.mean(0)[at]), float(y.mean(0)[at]))
        if _apart(x.reshape(RUNS, -1).mean(1), y.reshape(RUNS, -1).mean(1)):
            return _says(name, f": {what} over {RUNS} seeds and all elements", float(x.mean()), float(y.mean()))
    return _zeros(name, (a == 0).double(), (b == 0).double())


def _says(name: str, what: str, got: float, expected: float) -> Check:
    return Check(cls="wrong", summary=f"{name}{what} is {got:.4g}, expected {expected:.4g}", where=name,
                 expected=f"{expected:.4g}", got=f"{got:.4g}")  # fmt: skip


def _apart(x: torch.Tensor, y: torch.Tensor) -> bool:
    """Whether one number a run, from two sets of runs, differ in mean (Welch's statistic; runs are independent even where
    the elements of one run are not)."""
    gap = float((x.mean() - y.mean()).abs())
    floor = 1e-5 * float(y.abs().mean()) + 1e-12
    return gap > POOLED * math.sqrt(float(x.var() + y.var()) / RUNS) + floor


def _zeros(name: str, p: torch.Tensor, q: torch.Tensor) -> Check | None:
    """How often elements are exactly zero (dropped), and whether elements at one distance are dropped together."""
    x, y = p.reshape(RUNS, -1), q.reshape(RUNS, -1)
    if _apart(x.mean(1), y.mean(1)):
        return _says(name, ": share of zeros", float(p.mean()), float(q.mean()))
    for lag in LAGS:
        if x.shape[1] < 4 * lag:
            break
        ours, theirs = ((t[:, lag:] * t[:, :-lag]).mean(1) for t in (x, y))
        if _apart(ours, theirs):
            return _says(name, f": share of zeros whose neighbour at distance {lag} is zero too", float(ours.mean()),
                         float(theirs.mean()))  # fmt: skip
    return None
