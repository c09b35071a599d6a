"""Hazards of gradients: subsets, incoming gradients of any form, backward twice, gradients of gradients."""

from __future__ import annotations

import itertools
from typing import Any

import torch

from . import hazard
from .case import Case, close, same


def _own(arguments: dict[str, Any], wanted: tuple[str, ...] | list[str]) -> dict[str, Any]:
    return {n: v.detach().clone().requires_grad_(n in wanted) if isinstance(v, torch.Tensor) else v
            for n, v in arguments.items()}  # fmt: skip


def _gradients(case: Case, function: Any, wanted: Any, **options: Any) -> list[torch.Tensor]:
    own = _own(case.arguments(), wanted)
    results = function(**own)
    # A result takes its cotangent by its place: a registered operator's results all carry gradients, a reference's may not.
    sent = [(r, c) for r, c in zip(results, case.cotangents(results), strict=True) if r.requires_grad]
    return list(torch.autograd.grad([r for r, _ in sent], [own[n] for n in wanted], [c for _, c in sent], **options))


@hazard(9, 10)
def requires_grad_subsets(case: Case) -> str | None:
    """Each subset of the differentiable inputs gets the reference's gradients, for a random cotangent."""
    names = case.differentiable(case.arguments())
    if not names:
        return "nothing is differentiable"
    for count in range(1, len(names) + 1):
        for wanted in itertools.combinations(names, count):
            got, expected = (_gradients(case, f, wanted) for f in (case.public, case.reference))
            for n, g, e in zip(wanted, got, expected, strict=True):
                close(g, e, f"gradient of {n}, wanted {wanted}")
    return None


@hazard(11)
def backward_twice(case: Case) -> str | None:
    """A second backward with ``retain_graph`` gives the same bits."""
    names = case.differentiable(case.arguments())
    if not names:
        return "nothing is differentiable"
    own = _own(case.arguments(), names)
    results = tuple(r for r in case.public(**own) if r.requires_grad)
    first, second = (torch.autograd.grad(results, [own[n] for n in names], case.cotangents(results), retain_graph=True)
                     for _ in range(2))  # fmt: skip
    for n, a, b in zip(names, first, second, strict=True):
        same(b, a, f"second gradient of {n}")
    return None


@hazard(11)
def double_backward(case: Case) -> str | None:
    """Gradients of gradients are refused with a message, as the contract declares, not zero."""
    names = case.differentiable(case.arguments())
    if not names:
        return "nothing is differentiable"
    first = _gradients(case, case.public, names, create_graph=True)
    try:
        torch.stack([g.square().sum() for g in first]).sum().backward()
    except NotImplementedError as e:
        if "double backward" in str(e):
            return None
        raise AssertionError(f"the refusal says '{e}', without the words 'double backward'") from None
    raise AssertionError("double backward went through, though the contract refuses it")
