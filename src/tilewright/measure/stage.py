"""One workload on stage: its inputs, the memory they lie in, and the arms in their sealed children."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy
import torch

from ..errors import TaskError
from ..prove.child.session import Outcome, Trouble, folders
from ..prove.child.transport import Bundle
from ..prove.examination import Examination
from ..prove.gate import Check
from ..task.calling import Calling
from ..task.task import Workload
from .arena import Arena
from .baselines import Offer
from .feed import Feed, Given
from .hand import Hand, Kept, Source, TimingSession
from .protocol import Protocol

COSTLY_S = 1.0
TRIES = 2  # untimed calls of a baseline that are judged before it is timed


@dataclass
class Player:
    """An arm that is ready to be timed, or the reason why not."""

    name: str
    session: TimingSession | None = None
    structure: dict[str, Any] = field(default_factory=dict)
    ready_s: float = 0.0
    wrong: str = ""
    unavailable: str = ""
    peak_bytes: int | None = None
    extra_bytes: int | None = None

    @property
    def ready(self) -> bool:
        return self.session is not None and not self.wrong and not self.unavailable


class Stage:
    """Opens arms over one arena and judges what they give."""

    def __init__(self, exam: Examination, problem: str, workload: Workload, protocol: Protocol,
                 rng: numpy.random.Generator, flush: int = 0):  # fmt: skip
        self.exam, self.problem, self.workload, self.flush = exam, problem, workload, flush
        self.feed = Feed(exam, workload, protocol, rng)
        self.protocol = protocol
        self.outputs, self.truth_s = self._truth()
        self.tries = [
            self.feed.choose() for _ in range(TRIES if self.truth_s < COSTLY_S else 1)
        ]  # the same for all arms: their truth is worked out once
        self.output_bytes = sum(t.numel() * t.element_size() for t in self.outputs.values())
        self.arena: Any = self._arena()
        self.players: list[Player] = []

    def _truth(self) -> tuple[dict[str, torch.Tensor], float]:
        """The reference's outputs, and the seconds that the truth about a call takes."""
        began = time.perf_counter()
        truth = self.exam.truth(self.feed.case)
        seconds = time.perf_counter() - began
        if truth.refused is not None or truth.baseline is None:
            raise self._no_result(truth.refused.message if truth.refused is not None else truth.note)
        return {n: t for n, t in truth.baseline.items() if isinstance(t, torch.Tensor)}, seconds

    def _no_result(self, why: str) -> TaskError:
        return TaskError(f"the reference gives no result at {self.feed.case}: {why}",
                         remedy="name other workloads in the task")  # fmt: skip

    def _arena(self) -> Any:
        return Arena(self.feed.case.inputs, self.outputs, self.protocol.slots)

    def _open(self, source: Source, reads: tuple[str, ...]) -> TimingSession:
        return TimingSession(source, limits=self.exam.limits, sandbox=self.exam.sandbox, reads=reads)

    def enter(self, name: str, source: Source) -> Player:
        """Open, build and try an arm; a fault makes it wrong or unavailable, never an exception."""
        player, began = Player(name), time.perf_counter()
        self.players.append(player)
        session, failed, before = self._opened(name, source)
        player.session = session
        if failed is not None:
            player.unavailable = words(failed)
            return player
        for turn in range(len(self.tries)):
            fault = self._try(player, turn)
            if turn == 0:
                player.ready_s = before + time.perf_counter() - began
            if fault or player.unavailable:
                player.wrong = fault
                break
        if source.kernel is None:  # threads of the reference's own are no cheat
            session.watched.threads_at_rest = max(session.watched.threads_at_rest, session.watched.threads())
        self._memory(player)
        return player

    def prepare(self, sources: Mapping[str, Source]) -> None:
        """Arms that will enter soon; they may be opened at once."""

    def _opened(self, name: str, source: Source) -> tuple[TimingSession, Trouble | None, float]:
        """An arm's child, what stands against it, and the seconds that were spent on it before."""
        reads = folders(self.problem, source.kernel.path if source.kernel else None, *map(str, source.options.values()))
        session = self._open(source, reads)
        failed = session.build(self._how(source), self.feed.case.state, self.workload)
        return session, failed or session.attach(self.arena, self._dims(), self.flush), 0.0

    def offer(self, offer: Offer) -> Player:
        """The arm of an offer; one without a source is unavailable."""
        if offer.source is None:
            player = Player(offer.name, unavailable=offer.reason)
            self.players.append(player)
            return player
        return self.enter(offer.name, offer.source)

    def _how(self, source: Source) -> Calling:
        how = self.feed.case.calling
        if source.kernel is not None and source.kernel.language == "native":
            how = how.model_copy(update={"outputs": self.exam._native_outputs()})
        return how

    def _dims(self) -> dict[str, int]:
        return {n: self.feed.case.dims[n] for n in self.exam.sheet.dims}

    def _try(self, player: Player, turn: int) -> str:
        """One untimed call: what is wrong with it, in words."""
        assert player.session is not None
        slot = turn % self.arena.slots
        given = self._give(slot, self.tries[turn])
        trouble, structure, outputs, odd = player.session.attempt(slot)
        if trouble is not None:
            player.unavailable = words(trouble)
            return ""
        player.structure = structure
        after = self._after(slot)
        return self._judge(given, Outcome(outputs=outputs, tree=structure, odd=odd, inputs_after=after))

    def _give(self, slot: int, given: Given) -> Given:
        self.feed.write(self.arena.place[slot], given)[1]()
        return given

    def _after(self, slot: int) -> dict[str, torch.Tensor]:
        return {n: t.clone() for n, t in self.arena.place[slot].inputs.items()}

    def _judge(self, given: Given, outcome: Outcome, bundle: Bundle | None = None) -> str:
        if self.exam.contract.random:
            return ""
        check = self._look(given, outcome, bundle)
        return check.summary if check.failed else ""

    def _look(self, given: Given, outcome: Outcome, bundle: Bundle | None = None) -> Check:
        return self.exam.judge(self.feed.remake(given), outcome)

    def judge(self, kept: Kept, name: str) -> str:
        """What is wrong with a timed call's outputs, in words; empty if they are right."""
        if kept.changed:
            return f"a timed call changed its input '{kept.changed[0]}'"
        player = next(p for p in self.players if p.name == name)
        outcome = Outcome(outputs=kept.outputs, tree=player.structure, inputs_after=kept.after)
        found = self._judge(kept.given, outcome, kept.bundle)
        return f"the output of a timed call is wrong: {found}" if found else ""

    def _memory(self, player: Player) -> None:
        """Peak memory of one call, as the system counts it for the child."""
        session = player.session
        if session is None or not player.ready or not session.watched.seen or not session.watched.forget_peak():
            return
        before, _ = session.watched.memory()
        self._try(player, 0)
        peak = session.watched.memory()[1]
        native = session.source.kernel is not None and session.source.kernel.language == "native"
        own = 0 if native else 2 * self.output_bytes  # made by the call, and packed for the parent
        player.peak_bytes, player.extra_bytes = peak, max(0, peak - before - own)

    def notes(self) -> tuple[str, ...]:
        """What this workload's times don't rest on, in words."""
        unseen = any(p.session is not None and not p.session.watched.seen for p in self.players)
        same = self.feed.repeats()
        return (
            *(("threads and processors of the timed processes can't be seen from here",) if unseen else ()),
            *((f"values of {', '.join(same)} come again after {len(self.feed.cases)} sets",) if same else ()),
            *(("outputs are random, so none was judged",) if self.exam.contract.random else ()),
        )

    def captured(self, player: Player) -> bool:
        """Whether an arm's call can be replayed from a graph."""
        return False

    def hand(self, player: Player, *, cold: bool = False, graph: bool = False) -> Hand:
        """Turns of an arm that is ready."""
        assert player.session is not None
        return Hand(player.session, self.arena, self.feed, cold=cold)

    def close(self) -> None:
        for p in self.players:
            if p.session is not None:
                p.session.close()
        self.arena.close()


def make(exam: Examination, problem: str, workload: Workload, protocol: Protocol, rng: numpy.random.Generator,
         flush: int = 0, place: Any = None) -> Stage:  # fmt: skip
    """A stage on the CPU, or on ``place`` (a Device)."""
    if place is None:
        return Stage(exam, problem, workload, protocol, rng, flush)
    from .device_stage import DeviceStage

    return DeviceStage(exam, problem, workload, protocol, rng, flush, place=place)


def words(t: Trouble) -> str:
    """Why an arm can't run, in one line."""
    first = (t.message or t.kind).strip().splitlines()
    at = f" ({Path(t.where).name})" if t.where else ""
    return f"{t.type + ': ' if t.type else ''}{first[0][:300] if first else t.kind}{at}"


def secret() -> numpy.random.Generator:
    """A generator that nobody can guess."""
    return numpy.random.default_rng(int.from_bytes(os.urandom(16), "big"))
