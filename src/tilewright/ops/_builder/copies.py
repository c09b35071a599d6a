"""Copies that an operator makes because its kernel can't take a layout: declared in the contract, and counted here."""

from __future__ import annotations

from collections import Counter

import torch

MADE: Counter[tuple[str, str]] = Counter()


def contiguous(op: str, argument: str, t: torch.Tensor) -> torch.Tensor:
    """``t`` itself where it is contiguous, else a copy, counted in ``MADE[op, argument]``."""
    if t.is_contiguous():
        return t
    MADE[op, argument] += 1
    return t.contiguous()
