"""Values for timed calls: never the same twice, and complete only when the call begins.

A call's input is one of a few drawn sets, shifted by a secret number of elements, with a share of its elements drawn
anew: a result kept by content, address, shape or count is wrong. Shifting keeps the distribution where elements are
drawn independently; other kinds (permutations, sorted offsets, what a task's own code makes) are used as drawn. Until
just before the call, a few cache lines at secret places hold other values of the same tensor: who starts early, while
the parent still writes, computes on those. (pygpubench repairs such lines too.)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy
import torch

from ..prove.case import Case, Recipe
from ..prove.examination import Examination
from ..task import values
from ..task.task import Workload
from ..task.tensors import TensorSpec
from .arena import LINE, Slot
from .protocol import Protocol

KEPT = 4
INDEPENDENT = ("normal", "uniform", "integers", "bool")


@dataclass(frozen=True)
class Given:
    """What one call was given: enough to make the same input again."""

    which: int
    shifts: dict[str, int]
    patches: dict[str, tuple[int, numpy.ndarray]]


class Feed:
    """Inputs of one workload. ``rng`` is secret."""

    def __init__(self, exam: Examination, workload: Workload, protocol: Protocol, rng: numpy.random.Generator):
        self.exam, self.workload, self.protocol, self.rng = exam, workload, protocol, rng
        self.cases = [self._draw()]
        each = sum(t.numel() * t.element_size() for t in self.case.tensors.values())
        self.cases += [self._draw() for _ in range(min(protocol.sets, protocol.sets_bytes // max(1, each)) - 1)]
        self.drawn = torch.Generator().manual_seed(int(rng.integers(1 << 60)))
        self.flat = [{n: _flat(t) for n, t in c.tensors.items()} for c in self.cases]
        self._made: list[tuple[Given, Case]] = []
        self.kinds = {n: self._kind(n) for n in self.cases[0].tensors}

    def _draw(self) -> Case:
        seed = int(self.rng.integers(1 << 60))
        return self.exam.make(Recipe(self.workload, seed=seed, extra=(("state", "as made"),)))

    @property
    def case(self) -> Case:
        """A case of this workload; every other one differs in its values alone."""
        return self.cases[0]

    def repeats(self) -> tuple[str, ...]:
        """Inputs that are used as drawn, so that one of a few sets comes again."""
        return tuple(n for n, kind in self.kinds.items() if kind is None)

    def _kind(self, name: str) -> TensorSpec | None:
        spec = self.exam.sheet.inputs.get(name)
        known = isinstance(spec, TensorSpec) and spec.values.kind in INDEPENDENT
        return spec if known and self.case.tensors[name].is_contiguous() else None  # type: ignore[return-value]

    def write(self, slot: Slot, given: Given | None = None) -> tuple[Given, Callable[[], None]]:
        """Put a new input (or a ``given`` one) into ``slot``, all but a few lines; what it is, and what completes it."""
        given = given or self.choose()
        for name, target in slot.input_bytes.items():
            self._fill(target, name, given)
        return given, self._hold_back(list(slot.input_bytes.values()))

    def choose(self) -> Given:
        """A new input, as data."""
        shifts, patches = {}, {}
        for name, spec in self.kinds.items():
            if spec is None:
                continue
            t = self.case.tensors[name]
            n = t.numel()
            if n == 0:
                continue
            shifts[name] = int(self.rng.integers(n))
            m = self.fresh(n)
            dtype = self.exam.dtype_of(spec, self.workload)
            fresh = values.draw(spec, (m,), dtype, self.drawn, self.workload.dims)
            patches[name] = (int(self.rng.integers(n - m + 1)), _flat(fresh))
        return Given(int(self.rng.integers(len(self.cases))), shifts, patches)

    def fresh(self, n: int) -> int:
        """How many of ``n`` elements are drawn anew for a call."""
        return max(1, min(int(n * self.protocol.patch), self.protocol.patch_most))

    def _fill(self, target: numpy.ndarray, name: str, given: Given) -> None:
        source, size = self.flat[given.which][name], self.case.tensors[name].element_size()
        cut = given.shifts.get(name, 0) * size
        rest = len(source) - cut
        target[:rest] = source[cut:]
        target[rest:] = source[:cut]
        if name in given.patches:
            at, fresh = given.patches[name]
            target[at * size : at * size + len(fresh)] = fresh

    def _hold_back(self, targets: list[numpy.ndarray]) -> Callable[[], None]:
        held = []
        lines = [t[: len(t) // LINE * LINE].reshape(-1, LINE) for t in targets if len(t) >= 2 * LINE]
        for grid in lines:
            k = max(1, self.protocol.decoys // len(lines))
            at = self.rng.integers(0, len(grid), k)
            right = grid[at].copy()
            grid[at] = grid[self.rng.integers(0, len(grid), k)]
            held.append((grid, at, right))

        def complete() -> None:
            for grid, at, right in held:
                grid[at] = right

        return complete

    def remake(self, given: Given) -> Case:
        """The case of a call that was timed, to be judged."""
        for known, case in self._made:
            if known is given:
                return case  # several arms were given the same, and its truth is known
        model = self.cases[given.which]
        inputs: dict[str, Any] = {}
        for name, v in model.inputs.items():
            inputs[name] = v.clone() if isinstance(v, torch.Tensor) else v
            if isinstance(v, torch.Tensor) and name in self.kinds:
                self._fill(_flat(inputs[name]), name, given)
        made = replace(model, inputs=inputs, changed=True)
        self._made = [*self._made, (given, made)][-KEPT:]
        return made


def _flat(t: torch.Tensor) -> numpy.ndarray:
    """A tensor's memory as bytes, from its first to its last element."""
    from .arena import _bytes

    return _bytes(t)
