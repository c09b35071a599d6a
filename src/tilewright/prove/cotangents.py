"""Kinds of incoming gradients. Each takes a random contiguous one and returns what backward is called with.

Sources: sliced and transposed dY (unsloth PR 10617, flash-attention #355, FlagGems #1068), the expanded scalar that
``.sum().backward()`` sends (FlagGems #2338), uniform gradients that hide a missing term.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

from .layouts import LAYOUTS


def _layout(name: str) -> Callable[[torch.Tensor], torch.Tensor]:
    def make(c: torch.Tensor) -> torch.Tensor:
        view = LAYOUTS[name](c)
        return c if view is None else view

    return make


def _expanded(c: torch.Tensor) -> torch.Tensor:
    """One number for all, stride 0 in every axis, as ``.sum()`` sends it."""
    return torch.full((), 1.25, dtype=c.dtype).expand(c.shape)


COTANGENTS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "random": lambda c: c, "ones": torch.ones_like, "zeros": torch.zeros_like, "expanded": _expanded,
    "transposed": _layout("transposed"), "sliced": _layout("sliced"), "stepped": _layout("stepped"),
}  # fmt: skip
