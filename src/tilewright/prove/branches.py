"""Branches never taken: inputs on which a comparison of the kernel comes out the other way.

A kernel that is wrong only where ``x == 3.25`` or where a row's maximum passes 1e4 is the same formula as the
reference on almost all inputs, so neither random values nor a field show it. But the comparison is in the trace, and
its two sides are differentiable: where all elements agree on an outcome, one input is moved until the sides meet (and
past that, for an inequality), by Newton's method on the input that moves them most.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch

SITES, NEWTON = 8, 4
BEYOND = 2.0**-6


@dataclass
class Site:
    """One comparison that had one outcome for all elements."""

    where: str
    predicate: str
    gap: torch.Tensor


class Sites:
    """Comparisons as a domain met them, by line and predicate; those with both outcomes are forgotten."""

    def __init__(self) -> None:
        self.constant: dict[tuple[str, str], Site] = {}
        self.mixed: set[tuple[str, str]] = set()

    def saw(self, predicate: str, a: torch.Tensor, b: torch.Tensor, where: str, out: torch.Tensor) -> None:
        key = (where, predicate)
        if key in self.mixed or out.numel() == 0:
            return
        if bool(out.any()) and not bool(out.all()):
            self.mixed.add(key)
            self.constant.pop(key, None)
            return
        held = self.constant.get(key)
        gap = (a - b).reshape(-1)
        if held is None or float(best(gap)[1]) < float(best(held.gap)[1]):
            self.constant[key] = Site(where, predicate, gap)


def best(gap: torch.Tensor) -> tuple[int, float]:
    """The element whose sides lie nearest, and how far apart."""
    size = torch.nan_to_num(gap.detach().abs(), nan=math.inf)
    at = int(size.argmin())
    return at, float(size[at])


def flip(
    run: Callable[[Mapping[str, torch.Tensor]], Sites],
    inputs: Mapping[str, torch.Tensor],
    bounds: Mapping[str, list[float]],
) -> list[tuple[str, dict[str, torch.Tensor]]]:
    """Inputs (float64) that bring the two sides of a comparison together, with its line. ``run`` evaluates the kernel
    on inputs that require gradients and gives its sites."""
    found = []
    for key in list(run(leaves(inputs)).constant)[:SITES]:
        moved = _solve(run, dict(inputs), bounds, key)
        if moved is not None:
            found.append((key[0], moved))
    return found


def leaves(inputs: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    return {n: t.detach().clone().requires_grad_(True) for n, t in inputs.items()}


def _solve(run: Any, inputs: dict[str, torch.Tensor], bounds: Mapping[str, list[float]],
           key: tuple[str, str]) -> dict[str, torch.Tensor] | None:  # fmt: skip
    chosen: tuple[str, int] | None = None
    for step in range(NEWTON):
        at = leaves(inputs)
        site = run(at).constant.get(key)
        if site is None:
            return inputs if step else None
        if not site.gap.requires_grad:
            return None
        element, distance = best(site.gap)
        if not math.isfinite(distance):
            return None
        if distance == 0.0 and _meets(site.predicate):
            return inputs
        slopes = torch.autograd.grad(site.gap[element], list(at.values()), allow_unused=True)
        known = {n: g for n, g in zip(at, slopes, strict=True) if g is not None and bool(torch.isfinite(g).all())}
        if chosen is None:
            chosen = _steepest(known)
        if chosen is None or chosen[0] not in known:
            return None
        name, place = chosen
        slope = float(known[name].reshape(-1)[place])
        if slope == 0.0:
            return None
        gap = float(site.gap[element].detach())
        wanted = 0.0 if _meets(site.predicate) else -math.copysign(BEYOND * max(1.0, abs(gap)), gap)
        x = inputs[name].detach().clone()
        value = float(x.reshape(-1)[place]) + (wanted - gap) / slope
        low, high = bounds.get(name, [-1e4, 1e4])
        if not low <= value <= high:
            return None
        x.view(-1)[place] = value
        inputs = {**inputs, name: x}
    return inputs


def _meets(predicate: str) -> bool:
    """Whether the outcome changes where both sides are equal, and only there."""
    return predicate.endswith(("eq", "ne"))


def _steepest(slopes: Mapping[str, torch.Tensor]) -> tuple[str, int] | None:
    top, found = 0.0, None
    for n, g in slopes.items():
        if g.numel():
            at = int(g.abs().argmax())
            if float(g.reshape(-1)[at].abs()) > top:
                top, found = float(g.reshape(-1)[at].abs()), (n, at)
    return found
