"""Tensors of any number of dims as rows along the last one."""

from __future__ import annotations

import math

import torch

from .copies import MADE


def rows(op: str, argument: str, t: torch.Tensor) -> torch.Tensor:
    """``t`` as (M, N), N being its last dim (1 without any): a view where strides allow one, else a copy, counted."""
    shape = rows_of(t.shape)
    try:
        return t.view(shape)
    except RuntimeError:
        MADE[op, argument] += 1
        return t.reshape(shape)


def rows_of(shape: torch.Size | tuple[int, ...]) -> tuple[int, int]:
    """``(M, N)`` of a shape."""
    return math.prod(shape[:-1]), shape[-1] if len(shape) else 1
