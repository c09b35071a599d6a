"""Parameters and buffers of a reference module, varied.

A fresh LayerNorm has weights of one and biases of zero, so a kernel that ignores both is right on it. A kernel must use the
parameters that it is given: what is constant in a fresh module is therefore drawn at random for all but a gate's first
cases. Variances stay positive, and integers (counters) stay as they are.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch

SPREAD = 0.5


def vary(state: Mapping[str, torch.Tensor], g: torch.Generator) -> dict[str, torch.Tensor]:
    """``state`` with its constant float tensors (of more than one element, or not 0-dimensional) made to vary."""
    return {n: _varied(n, t, g) for n, t in state.items()}


def _varied(name: str, t: torch.Tensor, g: torch.Generator) -> torch.Tensor:
    if name.startswith("init.") or not t.is_floating_point() or t.dim() == 0 or t.numel() == 0:
        return t
    first = t.reshape(-1)[0]
    if not bool((t == first).all()) or not bool(torch.isfinite(first)):
        return t
    if name.rpartition(".")[2] == "running_var" or (t.numel() == 1 and float(first) > 0):
        return (first * (SPREAD + torch.rand(t.shape, generator=g))).to(t.dtype)
    return (first + SPREAD * torch.randn(t.shape, generator=g)).to(t.dtype)
