"""Timed calls on a device. Inputs are made on the device from sets that were uploaded once, by what the parent says.

    parent                         child
    the recipe of the inputs       sleeps
    one byte  ──────────────────▶  makes the inputs, empties the cache if asked, waits for the device; READY = i
    clock, GO = i  ─────────────▶  head start (HEAD cycles), event, call, event; waits for the whole device
    clock  ◀─────────────────────  DONE = i, with the time between the events, and the host's (HOST)
    WANT = ±i  ─────────────────▶  copies the outputs down, if these are to be judged
           ◀─────────────────────  DELIVERED = i

The events are this process's word, so the parent's clock, less what an empty call takes, must agree with them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from ...task import tree
from .transport import Bundle


class Inputs:
    """Inputs of calls, made on the device. ``sets``, ``patch`` and ``recipe`` are the parent's shared memory."""

    def __init__(self, gpu: Any, head: dict[str, Any], given: dict[str, torch.Tensor]):
        self.head, self.recipe = head, given["recipe"].numpy()
        self.patches = {n.removeprefix("patch."): t for n, t in given.items() if n.startswith("patch.")}
        self.names = [n for n in head["order"] if f"set0.{n}" in given]
        self.sets = [{n: gpu.up(given[f"set{j}.{n}"]) for n in self.names} for j in range(head["sets"])]

    def named(self, tensors: dict[str, torch.Tensor]) -> dict[str, Any]:
        """All arguments of a call, in order."""
        return {
            n: tensors[n] if n in tensors else tree.unflatten(self.head["scalars"][n], {}) for n in self.head["order"]
        }

    def make(self, into: dict[str, torch.Tensor]) -> None:
        """The inputs that the recipe tells of, in place."""
        which = int(self.recipe[0])
        for k, name in enumerate(self.names):
            shift, at = int(self.recipe[1 + 2 * k]), int(self.recipe[2 + 2 * k])
            self._fill(into[name], self.sets[which][name], shift, at, self.patches.get(name))

    def told(self) -> bytes:
        """The recipe, and the beginnings of what was drawn anew: equal for equal inputs."""
        heads = [t.view(-1)[:8].clone().view(torch.uint8).numpy().tobytes() for t in self.patches.values()]
        return b"".join([self.recipe.tobytes(), *heads])

    def _fill(
        self, target: torch.Tensor, source: torch.Tensor, shift: int, at: int, patch: torch.Tensor | None
    ) -> None:
        if shift < 0:  # used as drawn
            target.copy_(source)
            return
        to, of = target.view(-1), source.view(-1)
        rest = of.numel() - shift
        to[:rest].copy_(of[shift:])
        to[rest:].copy_(of[:shift])
        if patch is not None:
            to[at : at + patch.numel()].copy_(patch.view(-1), non_blocking=False)


class Rig:
    """Slots on the device; ``out`` is the parent's shared memory."""

    def __init__(self, gpu: Any, head: dict[str, Any], bundle: Bundle, call: Callable[[dict[str, Any]], Any]):
        self.gpu, self.call = gpu, call
        given = bundle.tensors()
        self.inputs = Inputs(gpu, head, given)
        self.out = {n.removeprefix("out."): t for n, t in given.items() if n.startswith("out.")}
        self.slots = [{n: gpu.again(t) for n, t in self.inputs.sets[0].items()} for _ in range(head["slots"])]
        self.bound = [self._bind(s) for s in self.slots]
        self.trash = gpu.trash(head["flush"]) if head["flush"] else None
        self.graphs: list[tuple[Callable[[], None], Any]] = []
        self.result: Any = None
        self.host = 0.0

    def _bind(self, tensors: dict[str, torch.Tensor]) -> Callable[[], Any]:
        inputs, call = self.inputs.named(tensors), self.call
        return lambda: call(inputs)

    def capture(self, warmups: int) -> None:
        """Every slot's call as a graph of its own; addresses are part of a graph."""
        self.graphs = [self.gpu.capture(b, warmups) for b in self.bound]

    def prepare(self, slot: int, *, cold: bool, graph: bool) -> None:
        """The inputs of the next call, in place; results of a graph are overwritten, so that old ones show."""
        self.inputs.make(self.slots[slot])
        if graph:
            for t in tree.flatten(self.graphs[slot][1])[1].values():
                poison(t)
        if cold and self.trash is not None:
            self.gpu.forget(self.trash)
        self.gpu.sync()

    def timed(self, slot: int, head_start: int, *, graph: bool) -> float:
        """One call between events; its result is kept until ``deliver``."""
        call = self.graphs[slot][0] if graph else self.bound[slot]
        result, seconds, self.host = self.gpu.time(call, head_start)
        self.result = self.graphs[slot][1] if graph else result
        return float(seconds)

    def empty(self, head_start: int) -> float:
        """The same without a call."""
        return float(self.gpu.time(_nothing, head_start)[1])

    def deliver(self, wanted: bool, put: Callable[[Any, dict[str, torch.Tensor]], None]) -> None:
        """Copy the outputs to where the parent looks, if it wants them."""
        if wanted:
            put(self.result, self.out)
        self.result = None

    def memory(self) -> tuple[int, int]:
        """Peak bytes of a call, and what of them is beyond the inputs."""
        found: tuple[int, int] = self.gpu.peak(self.bound[0])
        return found


def _nothing() -> None:
    pass


def poison(t: torch.Tensor) -> None:
    """Fill a tensor with a value that no honest result has everywhere."""
    if t.is_floating_point() or t.is_complex():
        t.fill_(float("nan"))
    elif t.dtype is not torch.bool:
        t.fill_(-1 if t.dtype is not torch.uint8 else 255)
