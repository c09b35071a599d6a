"""The parent's hand in timed calls on a device. The inputs are described, not written: the child makes them there.

The deciding clock is the device's events; the parent's clock, less what an empty call takes, must agree. Each turn makes
empty calls of its own, since their time follows the device's clock. A wait for the whole device ends a call, so work on
other streams counts by the parent's clock and not by the events, and shows.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import numpy
import torch

from ..prove.child import role_timing as words
from ..prove.child.session import Trouble
from ..prove.child.transport import Bundle
from . import cores
from .feed import Feed, Given
from .hand import Hand, Kept, TimingSession, Turn

_now = time.perf_counter_ns
MOST_SLOT_BYTES = 5 << 30
EMPTY_CALLS = 3  # of each turn
CLOCK_HZ = 2e9  # more than devices have: a head start lasts at least as long as it says
SLACK_NS = 20_000  # so long a wait for a processor stays within the head start that the device is given


class DeviceArena:
    """Memory shared with children on a device: the drawn sets, what changes from call to call, and the outputs."""

    def __init__(self, feed: Feed, outputs: Mapping[str, torch.Tensor], slots: int):
        tensors = feed.case.tensors
        p = feed.protocol
        each = sum(t.numel() * t.element_size() for t in tensors.values())
        self.slots = max(1, min(slots, MOST_SLOT_BYTES // max(1, each)))
        names: dict[str, torch.Tensor] = {"recipe": torch.zeros(1 + 2 * max(1, len(tensors)), dtype=torch.int64)}
        for j, case in enumerate(feed.cases):
            names |= {f"set{j}.{n}": t for n, t in case.tensors.items()}
        names |= {f"patch.{n}": torch.zeros(feed.fresh(t.numel()), dtype=t.dtype)
                  for n, t in tensors.items() if feed.kinds[n] is not None and t.numel()}  # fmt: skip
        names |= {f"out.{n}": torch.zeros(t.shape, dtype=t.dtype) for n, t in outputs.items()}
        self.bundle = Bundle.pack(names)
        self.views = self.bundle.tensors()
        self.outputs = {n: self.views[f"out.{n}"] for n in outputs}
        self.order = list(feed.case.inputs)
        self.scalars = {n: v for n, v in feed.case.inputs.items() if n not in tensors}
        self.extra: dict[str, Any] = {"sets": len(feed.cases), "warmups": p.graph_warmups}
        self.names = list(tensors)
        self.free: list[Bundle] = []

    def describe(self, given: Given) -> None:
        """Tell the child which input comes next."""
        recipe = self.views["recipe"].numpy()
        recipe[0] = given.which
        for k, name in enumerate(self.names):
            at, fresh = given.patches.get(name, (0, None))
            recipe[1 + 2 * k], recipe[2 + 2 * k] = given.shifts.get(name, -1), 0
            if fresh is not None:
                patch = self.views[f"patch.{name}"]
                recipe[2 + 2 * k] = at
                flat = torch.empty(0, dtype=torch.uint8).set_(patch.untyped_storage()).numpy()
                flat[: len(fresh)] = fresh

    def keep(self) -> Bundle:
        """The outputs as they are now, in memory that is used again: new memory takes longer than the copy."""
        if not self.free:
            return Bundle.pack(self.outputs)
        bundle = self.free.pop()
        for n, t in bundle.tensors().items():
            t.copy_(self.outputs[n])
        return bundle

    def close(self) -> None:
        for b in (self.bundle, *self.free):
            b.close()


class DeviceHand(Hand):
    """Turns of one arm on a device. ``graph``: the call is replayed from a CUDA graph."""

    def __init__(self, session: TimingSession, arena: DeviceArena, feed: Feed, *, cold: bool = False,
                 graph: bool = False):  # fmt: skip
        super().__init__(session, arena, feed, cold=cold)  # type: ignore[arg-type]
        self.place, self.graph = arena, graph
        self.head_start = feed.protocol.head_start

    def turn(self, calls: int, settle: int, judged: int | None, given: Given | None = None) -> Turn:
        """As ``Hand.turn``, with empty calls between those that settle and those that count."""
        self._empties: list[float] = []
        turned = super().turn(calls, settle + EMPTY_CALLS, judged, given)
        empty = float(numpy.median(self._empties)) if self._empties else 0.0
        turned.inner = [t - empty for t in turned.inner]
        turned.empty = self._empties
        return turned

    def _call(self, number: int, index: int, judged: int | None, result: Turn, wanted: Given | None = None) -> bool:
        w, watched = self.words, self.session.watched
        given = wanted or self.feed.choose()
        self.place.describe(given)
        for t in self.place.outputs.values() if index == judged else ():
            t.view(-1).view(torch.uint8).fill_(255)
        empty = -EMPTY_CALLS <= index < 0
        w[words.SLOT] = -1 if empty else self._slot(number)
        w[words.GRAPH], w[words.HEAD] = int(self.graph), int(self.head_start * CLOCK_HZ)
        if not self._ring(words.GO_ON) or not self._until(words.READY, number):
            return False
        waited = watched.waited_ns() + cores.waited_ns()
        began = _now()
        w[words.GO] = number
        if not self._until(words.DONE, number):
            return False
        wall = (_now() - began) / 1e9
        waited = watched.waited_ns() + cores.waited_ns() - waited
        judge = index >= 0 and index == judged
        w[words.WANT] = number if judge else -number
        if not self._until(words.DELIVERED, number):
            return False
        if empty:
            self._empties.append(wall)
        if index < 0:
            return True
        result.times.append(w[words.ENDED] / 1e9)
        result.inner.append(wall)
        result.host.append(w[words.HOST] / 1e9)
        result.clean.append(waited <= SLACK_NS)
        if judge:
            bundle = self.place.keep()
            result.kept.append(Kept(given, bundle.tensors(), (), bundle=bundle))
        return True

    def _slot(self, number: int) -> int:
        if self.place.slots == 1 or number % 2 == 0:
            return 0
        return 1 + int(self.feed.rng.integers(self.place.slots - 1))


def capture(session: TimingSession, warmups: int) -> Trouble | None:
    """Let an arm capture its call as a graph; what stands against it."""
    return session._ask({"do": "graph", "warmups": warmups})


def memory(session: TimingSession) -> tuple[int | None, int | None]:
    """Peak and extra bytes of a call on the device."""
    answer, _ = session.ask_raw({"do": "memory"})
    return (answer["peak"], answer["extra"]) if "peak" in answer else (None, None)
