"""Frames: the values of one scope, for one set of lanes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from ..errors import InternalError
from .values import struct


@dataclass(slots=True)
class Lanes:
    """``ids`` are positions in launch order (x fastest), ascending."""

    ids: Tensor
    n: int


@dataclass(slots=True)
class Frame:
    """Values of one scope. ``rel`` are this frame's lanes within the parent's (None: the same lanes); ``repeat`` is set
    where each parent lane stands for that many lanes (regions on elements). ``blocks`` are the frames of blocks
    already run in the same function, where control flow is a graph."""

    parent: Frame | None
    lanes: Lanes
    rel: Tensor | None = None
    repeat: int | None = None
    values: dict[int, Any] = field(default_factory=dict)
    blocks: list[Frame] = field(default_factory=list)

    def get(self, key: int) -> Any:
        value = self.values.get(key)
        if value is None:
            value = self.values[key] = self.outer(key)
        return value

    def outer(self, key: int) -> Any:
        for block in self.blocks:
            if key in block.values:
                return self.narrow(block.values[key], torch.searchsorted(block.lanes.ids, self.lanes.ids))
        if self.parent is None:
            raise InternalError(f"value {key} has no definition")
        value = self.parent.get(key)
        repeat = self.repeat
        if repeat is not None and value.shape[0] != 1:
            return struct(value, lambda t: t.repeat_interleave(repeat, 0))
        return value if self.rel is None else self.narrow(value, self.rel)

    def narrow(self, value: Any, rel: Tensor) -> Any:
        return value if value.shape[0] == 1 else struct(value, lambda t: t.index_select(0, rel))
