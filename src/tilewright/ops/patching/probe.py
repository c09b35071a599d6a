"""Probes: how far two functions differ, in results and gradients, and what counts as equal."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

ROUNDINGS = 16
"""How many roundings of their dtype two right ways to compute a probe may lie apart, measured against the largest value."""


class Unequal(Exception):
    """Two forwards were not shown to be equal; the message says why."""


def difference(got: torch.Tensor, wanted: torch.Tensor) -> float:
    """Largest difference over the largest magnitude. Infinite where shapes or dtypes differ, or either isn't finite."""
    if got.shape != wanted.shape or got.dtype != wanted.dtype:
        return float("inf")
    g, w = got.detach().double(), wanted.detach().double()
    if not (torch.isfinite(g).all() and torch.isfinite(w).all()):
        return float("inf")
    return float((g - w).abs().max() / w.abs().max().clamp_min(1e-30)) if w.numel() else 0.0


def apart(new: Callable[..., Any], old: Callable[..., Any], given: Sequence[torch.Tensor],
          weights: Sequence[torch.Tensor] = ()) -> float:  # fmt: skip
    """The largest difference of results and of gradients by ``given`` and ``weights``, for one random cotangent."""
    found = [_values(f, given, weights) for f in (new, old)]
    return max(difference(n, o) for n, o in zip(*found, strict=True))


def _values(function: Callable[..., Any], given: Sequence[torch.Tensor],
            weights: Sequence[torch.Tensor]) -> list[torch.Tensor]:  # fmt: skip
    own = [t.detach().clone().requires_grad_() for t in given]
    with torch.enable_grad():
        results = function(*own)
    results = results if isinstance(results, tuple) else (results,)
    sent = [seeded(r.shape, 77 + i, r.dtype, r.device) for i, r in enumerate(results)]
    wanted = [*own, *(w for w in weights if w.requires_grad)]
    return [*results, *torch.autograd.grad(results, wanted, sent)]


def seeded(shape: Sequence[int], seed: int, dtype: torch.dtype, device: Any = "cpu") -> torch.Tensor:
    """Random normal numbers that leave the global generator alone."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(tuple(shape), generator=generator, dtype=torch.float64).to(device=device, dtype=dtype)


def bound(dtype: torch.dtype) -> float:
    """What counts as equal in a dtype."""
    return ROUNDINGS * torch.finfo(dtype).eps


def equal(what: str, error: float, dtype: torch.dtype) -> float:
    """``error`` itself; raises Unequal where it is beyond the bound of ``dtype``."""
    if not error <= bound(dtype):
        short = str(dtype).removeprefix("torch.")
        raise Unequal(
            f"{what} differs from the old forward by {error:.1e} on a probe ({short}, allowed {bound(dtype):.1e})"
        )
    return error
