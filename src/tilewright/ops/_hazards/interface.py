"""Hazards of the interface: what is refused, and how; what kinds of tensors may come."""

from __future__ import annotations

import copy
from typing import Any

import torch

from .._builder import ArgumentError
from . import hazard
from .case import Case, close, same


def _refusal(case: Case, arguments: dict[str, Any]) -> ArgumentError | None:
    """How the call was refused; None if it was not. Any other error is a fault."""
    try:
        case.public(**arguments)
    except ArgumentError as e:
        return e
    return None


@hazard(25)
def mixed_dtypes(case: Case) -> str | None:
    """One float argument of another dtype is refused by name with a remedy, or it is taken and the results stay right."""
    floats = [n for n, v in case.arguments().items() if isinstance(v, torch.Tensor) and v.is_floating_point()]
    if len(floats) < 2:
        return "there is one float argument"
    plain = case.public(**case.arguments())
    other = torch.float64 if case.dtype != torch.float64 else torch.float32
    for name in floats:
        arguments = case.arguments()
        refusal = _refusal(case, {**arguments, name: arguments[name].to(other)})
        if refusal is None:
            arguments = case.arguments()  # an operator in place has written to the others
            for got, wanted in zip(case.public(**{**arguments, name: arguments[name].to(other)}), plain, strict=True):
                close(got.to(wanted.dtype), wanted, f"{name} as {other}, taken without a word")
            continue
        named = [n for n in floats if n in str(refusal)]
        assert named, f"{name} as {other} is refused without naming an argument: {refusal}"
        assert refusal.remedy, f"the refusal of {name} as {other} names no remedy: {refusal}"
    return None


@hazard(25)
def foreign_dtype(case: Case) -> str | None:
    """A float argument of integers is refused by name, with a remedy."""
    for name in case.differentiable(case.arguments()):
        arguments = case.arguments()
        refusal = _refusal(case, {**arguments, name: arguments[name].to(torch.int64)})
        assert refusal is not None, f"{name} as int64 is taken without a word"
        assert name in str(refusal), f"the refusal does not name {name}: {refusal}"
        assert refusal.remedy, f"the refusal of {name} as int64 names no remedy: {refusal}"
    return None if case.differentiable(case.arguments()) else "nothing is differentiable"


class _Sub(torch.Tensor):
    """A subclass that changes nothing."""


@hazard(24)
def kinds_of_tensors(case: Case) -> None:
    """Parameters, deep copies, subclasses and inference mode change nothing."""
    plain = case.public(**case.arguments())

    def all_tensors(change: Any) -> dict[str, Any]:
        return {n: change(v) if isinstance(v, torch.Tensor) else v for n, v in case.arguments().items()}

    with torch.no_grad():
        found = {
            "parameters": case.public(**all_tensors(lambda t: torch.nn.Parameter(t, requires_grad=False))),
            "deep copies": case.public(**copy.deepcopy(case.arguments())),
            "subclasses": case.public(**all_tensors(lambda t: t.as_subclass(_Sub))),
        }
    with torch.inference_mode():
        found["inference mode"] = case.public(**all_tensors(torch.clone))
    for what, results in found.items():
        for got, wanted in zip(results, plain, strict=True):
            same(torch.Tensor(got) if isinstance(got, _Sub) else got, wanted, what)
