"""Storages without memory: for questions of addresses at sizes that no machine here could hold."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


class Phantom:
    """A flat storage of ``size`` elements that takes no memory: reads give zeros, writes are forgotten, and bounds are
    checked as ever. Pass it as ``Arg(Phantom(size, dtype), offset, dtype)`` to ``run(..., track=False)`` in the machine
    domain, with ``programs`` limited to a sample of the grid."""

    def __init__(self, size: int, dtype: torch.dtype):
        self.size = size
        self.dtype = dtype
        self.shape = (size,)

    def view(self, dtype: torch.dtype) -> Phantom:
        scale = torch.empty(0, dtype=self.dtype).element_size() / torch.empty(0, dtype=dtype).element_size()
        return Phantom(int(self.size * scale), dtype)

    def index_select(self, axis: int, index: Tensor) -> Tensor:
        return torch.zeros(len(index), dtype=self.dtype)

    def index_add_(self, axis: int, index: Tensor, values: Any) -> Phantom:
        return self

    def __setitem__(self, index: Tensor, values: Any) -> None:
        return None


def corners(grid: tuple[int, int, int], extra: int = 8, seed: int = 0) -> list[int]:
    """Positions in launch order of a grid's corner programs and their neighbours, and ``extra`` random ones."""
    x, y, z = grid
    ends = [sorted({0, min(1, n - 1), max(n - 2, 0), n - 1}) for n in grid]
    picked = {i + x * (j + y * k) for k in ends[2] for j in ends[1] for i in ends[0]}
    count = x * y * z
    numbers = torch.randint(0, max(1, count), (extra,), generator=torch.Generator().manual_seed(seed))
    return sorted(picked | set(numbers.tolist())) if count else []
