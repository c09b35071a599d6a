"""Task audit: which kernels that do not do the work would pass on the task's own workload?

Only the reference and the comparer take part. If zeros, a constant, an input handed back, or an input (a parameter)
left out is within the budget on every draw, then the tolerance or the workload is at fault, and passing the gate
``values`` means less than it seems. Sources: constant outputs that pass flat tolerances (KernelBench#165,
BackendBench), parameters that stay at their initial ones and zeros.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import torch

from ..errors import TaskError
from . import compare
from .case import Case, Recipe
from .child.session import Outcome, same_bits

if TYPE_CHECKING:
    from .examination import Examination, Truth

DRAWS = 2
USUAL = 1e-2
MOST_REPLACED = 24
HEAD = 4096
Outputs = Mapping[str, torch.Tensor]


@dataclass
class Audit:
    """``passing``: words for each trivial kernel that the comparer lets pass on every draw. ``usual``: those that
    ``allclose`` at 1e-2 would let pass. ``tried``: how many there were. ``notes``: what else is odd about the task."""

    passing: list[str] = field(default_factory=list)
    usual: list[str] = field(default_factory=list)
    tried: int = 0
    notes: list[str] = field(default_factory=list)


def audit(exam: Examination) -> tuple[Audit, Case]:
    """The audit of the task at its given workload, and the case of the last draw.

    Raises TaskError where the reference fails there, or gives another result when it is run again.
    """
    cases = [exam.make(Recipe(exam.workload(), seed=exam.seed_for("audit", draw))) for draw in range(DRAWS)]
    result = Audit()
    _repeatable(exam, cases[0])
    votes: dict[str, list[tuple[bool, bool]]] = {}
    for case in cases:
        truth = exam.truth(case)
        if truth.refused is not None:
            raise TaskError(
                f"the reference fails on the task's own workload ({case}): {truth.refused.message}",
                where=truth.refused.where or None, remedy="give workloads that the reference takes",
            )  # fmt: skip
        for words, outputs in (*_trivial(case, truth), *_left_out(exam, case)):
            votes.setdefault(words, []).append((_passes(exam, case, truth, outputs), _usual(truth, outputs)))
        if any(bool(y.isnan().any()) for y in truth.oracle.values() if y.is_floating_point()):
            result.notes.append("the reference gives NaN on its own workload")
    result.tried = len(votes)
    result.passing = [w for w, seen in votes.items() if len(seen) == DRAWS and all(ours for ours, _ in seen)]
    result.usual = [w for w, seen in votes.items() if len(seen) == DRAWS and all(usual for _, usual in seen)]
    result.notes = list(dict.fromkeys(result.notes))
    return result, cases[-1]


def _repeatable(exam: Examination, case: Case) -> None:
    """The same inputs and seed give the same bits; another seed too, unless the contract says that it draws."""
    if exam.contract.random:
        return
    run: dict[str, Any] = {"inputs": case.inputs, "workload": case.recipe.workload, "state": case.state}
    first, again, other = exam.reference.run_many([{**run, "seed": s} for s in (1, 1, 2)])
    if not (first.ok and again.ok and other.ok):
        return
    for second, words, remedy in (
        (again, "is not deterministic: run twice on the same input it gives different results",
         "remove what changes between calls (unseeded draws, time, counters), or set Contract(random=True)"),
        (other, "draws random numbers: its result depends on torch's seed",
         "set Contract(random=True), or call eval()"),
    ):  # fmt: skip
        for name, y in first.outputs.items():
            if name in second.outputs and not same_bits(y, second.outputs[name]):
                raise TaskError(f"the reference {words} ('{name}')", where=exam.sheet.path or None, remedy=remedy)


def _trivial(case: Case, truth: Truth) -> Iterator[tuple[str, Outputs]]:
    """Outputs that need no work: zeros, the mean, an input handed back."""
    model = _model(truth)
    if any(y.numel() for y in model.values()):
        yield "all zeros", {n: torch.zeros_like(y) for n, y in model.items()}
    if any(y.numel() > 1 for y in model.values()):  # of one number the mean is the number
        yield "one constant for all elements", {n: _mean(y) for n, y in model.items()}
    for name, x in case.tensors.items():
        if all(y.shape == x.shape and y.dtype == x.dtype for y in model.values()) and x.numel():
            yield f"input '{name}' handed back", {n: x.clone() for n in model}


def _left_out(exam: Examination, case: Case) -> Iterator[tuple[str, Outputs]]:
    """The reference's result with one input or parameter taken for zeros or ones."""
    fixed: dict[str, Any] = {"workload": case.recipe.workload, "seed": case.recipe.seed % (1 << 31)}
    runs: list[tuple[str, dict[str, Any]]] = []
    for kind, tensors in (("input", case.tensors), ("parameter", case.state)):
        for name, x in tensors.items():
            if x.numel() == 0 or len(runs) >= MOST_REPLACED:
                continue
            for words, value in (("zeros", torch.zeros_like(x)), ("ones", torch.ones_like(x))):
                inputs = {**case.inputs, name: value} if kind == "input" else case.inputs
                state = {**case.state, name: value} if kind == "parameter" else case.state
                runs.append((f"{kind} '{name}' taken for all {words}", {"inputs": inputs, "state": state, **fixed}))
    for (words, _), outcome in zip(runs, exam.reference.run_many([r for _, r in runs]) if runs else [], strict=True):
        if outcome.ok:
            yield words, outcome.outputs


def _passes(exam: Examination, case: Case, truth: Truth, outputs: Outputs) -> bool:
    """Whether the comparer passes the outputs. Most fail on their first elements already, which is quick to see."""
    fake = Outcome(outputs=dict(outputs), tree=truth.tree, inputs_after=dict(case.tensors))
    if exam.form(truth, fake) is not None:
        return False
    some = exam.values(case, _first(truth), replace(fake, outputs={n: _head(y) for n, y in outputs.items()}))
    return not some.failed and not exam.values(case, truth, fake).failed


def _first(truth: Truth) -> Truth:
    """The truth about the first elements of each output."""
    baseline = None if truth.baseline is None else {n: _head(y) for n, y in truth.baseline.items()}
    return replace(truth, oracle={n: _head(y) for n, y in truth.oracle.items()}, baseline=baseline,
                   sensitivity={n: _head(y) for n, y in truth.sensitivity.items()})  # fmt: skip


def _head(y: torch.Tensor) -> torch.Tensor:
    return y.reshape(-1)[:HEAD]


def _usual(truth: Truth, outputs: Outputs) -> bool:
    """Whether the field's usual check passes the outputs."""
    model = _model(truth)
    return all(n in outputs and outputs[n].shape == y.shape
               and torch.allclose(outputs[n].double(), y.double(), rtol=USUAL, atol=USUAL)
               for n, y in model.items() if not y.is_complex())  # fmt: skip


def _model(truth: Truth) -> Outputs:
    return truth.baseline if truth.baseline is not None else truth.oracle


def _mean(y: torch.Tensor) -> torch.Tensor:
    """A tensor full of the mean (of the commonest value, for integers and booleans)."""
    if y.numel() == 0:
        return y
    if y.is_floating_point() or y.is_complex():
        finite = torch.isfinite(y) if y.is_complex() else compare.classify(y.double()) == 0
        return torch.full_like(y, y[finite].to(torch.complex128 if y.is_complex() else torch.float64).mean().item())
    return torch.full_like(y, y.flatten().mode().values.item())
