"""Memory that the parent shares with the children it times: inputs and outputs at several addresses.

All arms of a comparison work on the same pages, so that no arm is lucky with its memory. Inputs and outputs are
contiguous unless a layout says otherwise; each lies between guard zones (``transport.Bundle``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy
import torch

from ..prove.child import transport
from ..prove.child.role_timing import WORDS
from ..prove.child.transport import Bundle

MOST_BYTES = 2 << 30
LINE = 64


@dataclass(frozen=True)
class Slot:
    """One place: the tensors a kernel sees, and the same memory as bytes."""

    inputs: dict[str, torch.Tensor]
    outputs: dict[str, torch.Tensor]
    input_bytes: dict[str, numpy.ndarray]
    output_bytes: dict[str, numpy.ndarray]


class Arena:
    """``slots`` places for the tensors among ``inputs`` and for ``outputs`` (models of form and dtype)."""

    def __init__(self, inputs: Mapping[str, Any], outputs: Mapping[str, torch.Tensor], slots: int):
        tensors = {n: t for n, t in inputs.items() if isinstance(t, torch.Tensor)}
        each = sum(t.untyped_storage().nbytes() for t in (*tensors.values(), *outputs.values()))
        self.slots = max(1, min(slots, MOST_BYTES // max(1, each)))
        self.bytes = each
        names: dict[str, torch.Tensor] = {}
        for s in range(self.slots):  # clones: tensors that shared a storage would share it in the bundle
            names |= {f"s{s}.in.{n}": _own(t) for n, t in tensors.items()}
            names |= {f"s{s}.out.{n}": torch.empty(t.shape, dtype=t.dtype) for n, t in outputs.items()}
        self.bundle = Bundle.pack(names)
        views = self.bundle.tensors()
        self.place = [self._slot(s, list(tensors), list(outputs), views) for s in range(self.slots)]
        self.extra: dict[str, Any] = {}
        self.order = list(inputs)
        self.scalars = {n: v for n, v in inputs.items() if n not in tensors}

    def _slot(self, s: int, inputs: list[str], outputs: list[str], views: dict[str, torch.Tensor]) -> Slot:
        given = {n: views[f"s{s}.in.{n}"] for n in inputs}
        made = {n: views[f"s{s}.out.{n}"] for n in outputs}
        return Slot(given, made, {n: _bytes(t) for n, t in given.items()}, {n: _bytes(t) for n, t in made.items()})

    def close(self) -> None:
        self.bundle.close()


def control() -> tuple[Bundle, memoryview]:
    """The words over which one child and the parent shake hands."""
    bundle = Bundle.pack({"words": torch.zeros(WORDS, dtype=torch.int64)})
    begin = bundle.head["storages"][0]["begin"]
    assert bundle.map is not None
    return bundle, memoryview(bundle.map)[begin : begin + 8 * WORDS].cast("q")


def _own(t: torch.Tensor) -> torch.Tensor:
    """A tensor of the same layout in a storage of its own."""
    span = transport.span(t)
    flat = torch.empty(t.storage_offset() + span, dtype=t.dtype)
    return torch.empty(0, dtype=t.dtype).set_(flat.untyped_storage(), t.storage_offset(), t.shape, t.stride())


def _bytes(t: torch.Tensor) -> numpy.ndarray:
    """The elements from the first to the last that a tensor touches, as bytes over the same memory."""
    n = transport.span(t) * t.element_size()
    flat = torch.empty(0, dtype=torch.uint8).set_(t.untyped_storage())
    begin = t.storage_offset() * t.element_size()
    return flat[begin : begin + n].numpy()
