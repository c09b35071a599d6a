"""The parent's hand in a timed call: it writes the inputs, starts the clock, gives the word, and stops the clock.

The deciding clock is the parent's own: from the word to the child's sign that the call has returned. The child's clock
around the call is kept beside it and must agree. What comes after the sign, copying the outputs to where the parent
looks, has its own limit, so that a result that is computed only when it is looked at shows.
"""

from __future__ import annotations

import os
import secrets
import select
import socket
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy
import torch

from ..kernel import Kernel
from ..prove.child import role_timing as words
from ..prove.child import transport
from ..prove.child.session import Session, Trouble, split, trouble
from ..prove.child.transport import Bundle
from ..task.calling import Calling
from ..task.task import Workload
from . import cores
from .arena import Arena, control
from .feed import Feed, Given
from .watch import Watched

_now = time.perf_counter_ns
ALONE = len(os.sched_getaffinity(0)) < 2 if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1) < 2
PEEK = 20_000  # looks at a word between two looks at the clock and at the child
POISON = 0xFF
RETAKES = 3
SLOW = ("compile", "max-autotune")
COMPILE_SECONDS = 600.0


@dataclass(frozen=True)
class Source:
    """What an arm runs: a kernel, or the problem itself transformed."""

    name: str
    kernel: Kernel | None = None
    problem: str = ""
    transform: str = "eager"
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Kept:
    """A timed call whose outputs are to be judged; ``bundle``: the memory that they lie in, where it is used again."""

    given: Given
    outputs: dict[str, torch.Tensor]
    changed: tuple[str, ...]
    after: dict[str, torch.Tensor] = field(default_factory=dict)
    bundle: Bundle | None = None


@dataclass
class Turn:
    """Seconds of the calls of a turn by the deciding clock and by the other; whether nobody had to wait for a processor
    meanwhile; seconds until the outputs were handed over; what the host took to launch a call, and empty calls (on a
    device); what is to be judged; what was refused."""

    times: list[float] = field(default_factory=list)
    inner: list[float] = field(default_factory=list)
    kept: list[Kept] = field(default_factory=list)
    clean: list[bool] = field(default_factory=list)
    delivery: list[float] = field(default_factory=list)
    host: list[float] = field(default_factory=list)
    empty: list[float] = field(default_factory=list)
    refusal: str = ""
    trouble: Trouble | None = None


class TimingSession(Session):
    """A sealed child that is timed."""

    def __init__(self, source: Source, *, device: str = "cpu", **options: Any):
        self.source, self.device = source, device
        self.words_bundle, self.words = control()
        self.count = 0
        started = time.perf_counter()
        self.bell, theirs = socket.socketpair()
        super().__init__("timing", name=f"timing of {source.name}", others=(theirs,), **options)
        theirs.close()
        self.watched = Watched(self.pid, self.server.process_id)
        self.load_trouble = self._load()
        self.load_s = time.perf_counter() - started

    def _load(self) -> Trouble | None:
        s = self.source
        if s.kernel is not None:
            sheet = {"path": os.path.abspath(s.kernel.path), "text": s.kernel.text, "entry": s.kernel.entry}
            head = {"do": "load", "language": s.kernel.language, "kernel": sheet}
        else:
            head = {"do": "source", "path": s.problem, **s.options}
        return self._ask({**head, "device": self.device})

    def _ask(self, head: dict[str, Any], bundles: tuple[Bundle, ...] = ()) -> Trouble | None:
        answer, out = self.ask_raw(head, bundles)
        for b in out:
            b.close()
        return trouble(answer["error"]) if "error" in answer else None

    def build(self, how: Calling, state: Mapping[str, torch.Tensor], workload: Workload) -> Trouble | None:
        """Make the callable."""
        if self.load_trouble is not None:
            return self.load_trouble
        bundle = Bundle.pack(state)
        head = {"do": "build", "calling": how.model_dump(mode="json"), "transform": self.source.transform,
                "workload": workload.model_dump(mode="json")}  # fmt: skip
        failed = self._ask(head, (bundle,))
        bundle.close()
        return failed

    def attach(self, arena: Arena, dims: Mapping[str, int], flush: int = 0) -> Trouble | None:
        """Share the arena; a C kernel also gets its dims."""
        native = self.source.kernel is not None and self.source.kernel.language == "native"
        extra = {f"dim.{n}": v for n, v in dims.items()} if native else {}
        scalars = split({**arena.scalars, **extra})[1]
        head = {"do": "attach", "slots": arena.slots, "order": [*arena.order, *extra], "scalars": scalars,
                "flush": flush, **arena.extra, "replayed": self.source.transform == "graph"}  # fmt: skip
        return self._ask(head, (self.words_bundle, arena.bundle))

    def attempt(self, slot: int = 0) -> tuple[Trouble | None, dict[str, Any], dict[str, torch.Tensor], dict[str, str]]:
        """One call without a clock: trouble, structure of the result, its tensors, and those of an odd type."""
        patience = COMPILE_SECONDS if self.source.transform in SLOW else None
        answer, out = self.ask_raw({"do": "try", "slot": slot}, seconds=patience)
        if "error" in answer:
            return trouble(answer["error"]), {}, {}, {}
        made = out[0].tensors(copy=True)
        for b in out:
            b.close()
        return None, answer["tree"], made, answer["odd"]

    def close(self) -> None:
        if hasattr(self, "watched"):
            self.watched.close()
        self.bell.close()
        self.words_bundle.close()
        super().close()


class Hand:
    """Turns of one arm over one arena."""

    def __init__(self, session: TimingSession, arena: Arena, feed: Feed, *, cold: bool = False):
        self.session, self.arena, self.feed = session, arena, feed
        self.words = session.words
        self.native = session.source.kernel is not None and session.source.kernel.language == "native"
        self.mutated = {n for n, s in feed.exam.sheet.inputs.items() if getattr(s, "mutated", False)}
        self.cold = cold
        self.head_start = 0.0

    def turn(self, calls: int, settle: int, judged: int | None, given: Given | None = None) -> Turn:
        """``settle`` untimed and then timed calls, until ``calls`` of them were undisturbed or ``RETAKES`` times as many
        were made; the timed call ``judged`` is kept; it gets the input ``given``."""
        result, most = Turn(), settle + RETAKES * calls
        if self.session.dead is not None:
            result.trouble = self.session.dead
            return result
        first, ticket = self.session.count + 1, secrets.token_hex(8)
        self.session.count += most
        self.words[words.FAILED], self.words[words.COLD] = 0, int(self.cold)
        head = {"do": "turn", "first": first, "calls": most, "ticket": ticket, "bundles": []}
        try:
            transport.send(self.session.channel, head)
        except transport.ProtocolFault as e:
            self.session._died(str(e))
            result.trouble = self.session.dead
            return result
        with cores.apart(self.session.watched.pid) as own:
            made = 0
            while (
                made < most
                and result.clean.count(True) < calls
                and self._call(first + made, made - settle, judged, result)
            ):
                made += 1
        if made < most and self.session.dead is None:
            self._ring(words.STOP)  # one that is not waited for would end the next turn
        self._finish(ticket, result)
        if own and not result.refusal and cores.of(self.session.watched.pid) - own:
            result.refusal = "it moved to processors that it was not given"
        return result

    def _ring(self, byte: bytes) -> bool:
        try:
            return self.session.bell.send(byte) == 1
        except OSError:
            return False

    def _call(self, number: int, index: int, judged: int | None, result: Turn, wanted: Given | None = None) -> bool:
        """One call; False where the child has ended or failed, or did what refuses its times."""
        w, slot, watched = self.words, self._slot(number), self.session.watched
        place = self.arena.place[slot]
        given, complete = self.feed.write(place, wanted)
        for flat in place.output_bytes.values():
            flat.fill(POISON)
        w[words.SLOT] = slot
        if busy := watched.busy():
            result.refusal = busy
            return False
        if not self._ring(words.GO_ON) or not self._until(words.READY, number):
            return False
        waited = watched.waited_ns() + cores.waited_ns()
        complete()
        began = _now()
        w[words.GO] = number
        if not self._until(words.DONE, number):
            return False
        ended = _now()
        if not self._until(words.DELIVERED, number):
            return False
        delivered = _now()
        if index < 0:
            return True
        disturbed = watched.waited_ns() + cores.waited_ns() > waited
        if not disturbed:
            result.delivery.append((delivered - ended) / 1e9)
        result.times.append((ended - began) / 1e9)
        result.inner.append((w[words.ENDED] - w[words.BEGAN]) / 1e9)
        result.clean.append(not disturbed)
        if index == judged:
            result.kept.append(self._keep(place, given))
        return True

    def _slot(self, number: int) -> int:
        """Every other call at the first address, the rest at secret ones."""
        if self.arena.slots == 1 or number % 2 == 0:
            return 0
        return 1 + int(self.feed.rng.integers(self.arena.slots - 1))

    def _keep(self, place: Any, given: Given) -> Kept:
        outputs = {n: t.clone() for n, t in place.outputs.items()}
        want = self.feed.remake(given)
        changed = tuple(n for n, t in want.tensors.items() if n not in self.mutated
                        and not numpy.array_equal(place.input_bytes[n], _bytes_of(t)))  # fmt: skip
        return Kept(given, outputs, changed, {n: place.inputs[n].clone() for n in self.mutated})

    def _until(self, word: int, number: int) -> bool:
        """Wait for a word to become ``number``. False when the child has failed, ended or let the time run out."""
        w, deadline = self.words, time.monotonic() + self.session.limits.seconds
        looks = 0
        while w[word] != number:
            looks += 1
            if ALONE:
                os.sched_yield()
            if looks % PEEK == 0:
                if w[words.FAILED] or select.select([self.session.channel], [], [], 0)[0]:
                    return w[word] == number
                if time.monotonic() > deadline:
                    self.session.server.kill(self.session.pid)
                    self.session._die("timeout", f"a call took more than {self.session.limits.seconds:g} s")
                    return False
        return True

    def _finish(self, ticket: str, result: Turn) -> None:
        if self.session.dead is None:
            try:
                answer, fds = transport.receive(self.session.channel, self.session.limits.seconds)
                transport.close(fds)
                if answer.get("ticket") != ticket:
                    raise transport.ProtocolFault("an answer that was not asked for")
                if "error" in answer:
                    result.trouble = trouble(answer["error"])
            except transport.Timeout:
                self.session.server.kill(self.session.pid)
                self.session._die("timeout", f"no answer within {self.session.limits.seconds:g} s")
            except (transport.ProtocolFault, ValueError) as e:
                self.session._died(str(e))
        result.trouble = result.trouble or self.session.dead


def _bytes_of(t: torch.Tensor) -> numpy.ndarray:
    from .arena import _bytes

    return _bytes(t)
