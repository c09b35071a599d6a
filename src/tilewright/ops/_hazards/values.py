"""Hazards of values: scale of the inputs, special values, repetition."""

from __future__ import annotations

from typing import Any

import torch

from . import hazard
from .case import Case, same

WORSE = 1.5  # times the eager operator's error in the same dtype
ULPS = 2.0  # roundings of the result's dtype that are allowed beside it
REPEATS = 20


def _as(arguments: dict[str, Any], names: list[str], change: Any) -> dict[str, Any]:
    return {n: change(v) if n in names else v for n, v in arguments.items()}


def _error(got: torch.Tensor, truth: torch.Tensor) -> torch.Tensor:
    return (got.double() - truth).abs().nan_to_num(0.0, 0.0, 0.0)


@hazard(22, 6)
def against_float64(case: Case) -> None:
    """At scales 1e-2, 1 and 1e3: the error against the reference in float64 is at most 1.5 times the error of the reference
    in the same dtype, and both agree on where NaN and infinities are; integers are the reference's."""
    names = [n for n, v in case.arguments().items() if isinstance(v, torch.Tensor) and v.is_floating_point()]
    for scale in (1.0, 1e-2, 1e3):
        given = _as(case.arguments(), names, lambda t, s=scale: t * s)
        eager, got = case.reference(**given), case.public(**given)
        if case.built.op.mutates:  # both wrote to the same tensors
            given = _as(case.arguments(), names, lambda t, s=scale: t * s)
            eager = case.reference(**given)
        truth = case.reference(**_as(given, names, torch.Tensor.double))
        for i, (g, e, t) in enumerate(zip(got, eager, truth, strict=True)):
            if not g.is_floating_point():
                same(g, e, f"result {i} at scale {scale}")
                continue
            assert torch.equal(g.isfinite(), e.isfinite()), f"result {i} at scale {scale}: NaN or infinity elsewhere"
            most, floor = (
                _error(e, t).max() if e.numel() else 0.0,
                ULPS * torch.finfo(g.dtype).eps * t.abs().nan_to_num(),
            )
            excess = _error(g, t) - WORSE * most - floor
            assert not (excess > 0).any(), (
                f"result {i} at scale {scale}: error {_error(g, t).max():.3g}, the reference's is {most:.3g}"
            )


@hazard(6)
def special_values(case: Case) -> None:
    """NaN and infinities in each float argument come out where the reference has them."""
    for name, value in case.arguments().items():
        if not isinstance(value, torch.Tensor) or not value.is_floating_point() or not value.numel():
            continue
        for special in (float("nan"), float("inf"), float("-inf")):
            arguments, twin = case.arguments(), case.arguments()
            arguments[name].view(-1)[value.numel() // 2] = special
            twin[name].view(-1)[value.numel() // 2] = special
            for i, (g, w) in enumerate(zip(case.public(**arguments), case.reference(**twin), strict=True)):
                what = f"{special} in {name}: result {i}"
                assert torch.equal(g.isnan(), w.isnan()), f"{what} is NaN at {int(g.isnan().sum())} elements, "\
                    f"the reference's at {int(w.isnan().sum())}"  # fmt: skip
                assert torch.equal(g.isinf(), w.isinf()), f"{what} is infinite elsewhere than the reference's"


@hazard(18)
def repeated(case: Case) -> str | None:
    """The same bits, twenty times, forward and backward."""
    if case.built.op.determinism != "bitwise":
        return "the contract promises no bits"
    names = case.differentiable(case.arguments())
    first: list[torch.Tensor] | None = None
    for _ in range(REPEATS):
        own = {
            n: v.requires_grad_(n in names) if isinstance(v, torch.Tensor) else v for n, v in case.arguments().items()
        }
        results = case.public(**own)
        wanted = tuple(r for r in results if r.requires_grad)
        grads = torch.autograd.grad(wanted, [own[n] for n in names], case.cotangents(wanted)) if names else ()
        found = [r.detach() for r in (*results, *grads)]
        first = first or found
        for got, before in zip(found, first, strict=True):
            same(got, before, "a repeated call")
    return None
