"""Judging one outcome: did a result come, has it the right form, are its values within their budgets.

The kinds of ``Trouble`` are put into words here; ``postcondition.py`` chooses how values are judged.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch

from ..errors import EnvironmentProblem, brief
from ..task.contract import Tolerance
from ..task.tree import shape_of
from . import compare
from .case import Case
from .child.session import Outcome, Trouble
from .gate import Check


@dataclass
class Truth:
    """What is right for one case. ``refused``: the reference itself raises here."""

    oracle: dict[str, torch.Tensor]
    baseline: dict[str, torch.Tensor] | None
    sensitivity: dict[str, torch.Tensor]
    tree: dict[str, Any]
    oracle_grads: dict[str, torch.Tensor]
    baseline_grads: dict[str, torch.Tensor] | None
    inputs_after: dict[str, torch.Tensor]
    baseline_after: dict[str, torch.Tensor]
    sensitivity_grads: dict[str, torch.Tensor]
    sensitivity_after: dict[str, torch.Tensor] = field(default_factory=dict)
    refused: Trouble | None = None
    note: str = ""
    refined: bool = False
    alias: dict[str, str] = field(default_factory=dict)
    seen: dict[str, Any] = field(default_factory=dict)


def trouble(outcome: Outcome) -> Check | None:
    """A Check if there is no result: the candidate's fault, or ours."""
    t = outcome.trouble
    if t is None:
        return None
    if t.kind == "environment":  # this machine lacks something: nobody's kernel is at fault
        raise EnvironmentProblem(t.message, remedy=t.remedy)
    if t.kind == "unsupported" or t.type == "Unsupported":
        return Check(silent=str(t))
    words = {"timeout": "hangs", "crash": "crashes", "exit": "ends the process", "protocol": "tampers with its channel",
             "memory": "runs out of memory", "launch": "launch fails", "forged": "launches what is not in its file",
             "exception": "raises", "interface": "can't be called"}  # fmt: skip
    what = words.get(t.kind, t.kind)
    cheat = t.kind in ("protocol", "forged")
    detail = "\n".join(x for x in (t.trace.strip(), t.output.strip()) if x)
    return Check(
        cls="cheat" if cheat else "wrong",
        summary=f"{what}: {brief(str(t), 'the detail of the finding, as tilewright show prints it')}",
        where=t.where,
        expected="a result",
        got=what,
        detail=detail[-3000:],
    )


def form(truth: Truth, outcome: Outcome) -> Check | None:
    """Structure, exact type, and dtypes and shapes of the outputs."""
    if outcome.odd:
        name, kind = next(iter(outcome.odd.items()))
        return Check(cls="cheat", summary=f"output '{name}' is a {kind}, not a plain tensor", where=name,
                     expected="torch.Tensor", got=kind)  # fmt: skip
    if shape_of(truth.tree) != shape_of(outcome.tree):
        return Check(cls="wrong", summary="the result has another structure than the reference's", where="out",
                     expected=str(shape_of(truth.tree)), got=str(shape_of(outcome.tree)))  # fmt: skip
    if (plain := _plain(truth.tree)) != _plain(outcome.tree):
        return Check(
            cls="wrong", summary="a value in the result differs", expected=str(plain), got=str(_plain(outcome.tree))
        )
    for name, y in (truth.baseline or {}).items():
        z = outcome.outputs.get(name)
        if z is not None and z.shape != y.shape:
            return Check(
                cls="wrong",
                summary=f"shape of '{name}' is {tuple(z.shape)}, expected {tuple(y.shape)}",
                where=name,
                expected=str(tuple(y.shape)),
                got=str(tuple(z.shape)),
            )
        if z is not None and z.dtype != y.dtype:
            return Check(cls="wrong", summary=f"dtype of '{name}' is {z.dtype}, expected {y.dtype}", where=name,
                         expected=str(y.dtype), got=str(z.dtype))  # fmt: skip
    return None


def values(case: Case, truth: Truth, outcome: Outcome, tolerance: Tolerance, mutated: list[str]) -> Check:
    """Outputs, inputs changed by contract, and gradients, against their budgets."""
    results = compare.compare_all(outcome.outputs, truth.oracle, truth.baseline, truth.sensitivity, tolerance)
    for n in mutated:
        if n in truth.inputs_after and n in outcome.inputs_after:
            results[n] = compare.compare(
                outcome.inputs_after[n],
                truth.inputs_after[n],
                truth.baseline_after.get(n),
                sensitivity=truth.sensitivity_after.get(n),
                tolerance=tolerance,
            )
    if case.recipe.grad:
        if (bad := missing_grads(truth, outcome)) is not None:
            return bad
        grads = compare.compare_all(
            outcome.grads, truth.oracle_grads, truth.baseline_grads, truth.sensitivity_grads, tolerance
        )
        results.update({f"grad of {n}": c for n, c in grads.items()})
    worst = max((c.ratio for c in results.values() if c.ok), default=0.0)
    for name, c in results.items():
        if not c.ok:
            return Check(
                cls="wrong" if c.gross else "inaccurate",
                summary=f"{name}{c.summary}",
                where=f"{name}{list(c.index)}",
                expected=c.expected,
                got=c.got,
                error=c.error,
                ratio=c.ratio,
            )
    return Check(ratio=worst)


def missing_grads(truth: Truth, outcome: Outcome) -> Check | None:
    missing = [n for n, g in truth.oracle_grads.items() if n not in outcome.grads and bool((g != 0).any())]
    if missing:
        return Check(cls="wrong", summary=f"no gradient reaches '{missing[0]}'", where=f"grad of {missing[0]}",
                     expected="a gradient", got="none")  # fmt: skip
    return None


def _plain(tree: Mapping[str, Any]) -> Any:
    """The non-tensor leaves of a result, floats left out (they are judged by structure only)."""
    ((kind, body),) = tree.items()
    if kind in ("tuple", "list"):
        return [_plain(x) for x in body]
    if kind == "dict":
        return {k: _plain(x) for k, x in body.items()}
    return body if kind == "=" and not isinstance(body, float) else None
