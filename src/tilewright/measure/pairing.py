"""Blocks of interleaved turns: every arm forth, every arm back (ABBA), so that a drift hits all arms alike; in a new
random order each time, so that no arm always follows the same other.

A block's sample of an arm is the median of its calls in both turns; a block's ratio pairs two arms. Outputs of secretly
picked calls are judged after each block, while no clock runs; an arm whose output is wrong there is out.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy

from .decide import clocks_disagree
from .hand import Hand, Kept, Turn
from .protocol import Protocol
from .record import CANDIDATE
from .statistics import interval, paired

Judge = Callable[[Kept, str], str]
Progress = Callable[[str, int, int], None]
LATEST = 0.9  # share of an arm's calls that must be queued in time


@dataclass
class Lane:
    """One arm of a figure, and what it gave so far. ``fault``: why it is out."""

    name: str
    hand: Hand
    calls: int = 0
    blocks: list[list[float]] = field(default_factory=list)
    cross: list[float] = field(default_factory=list)
    checked: int = 0
    disturbed: int = 0
    delivery: list[float] = field(default_factory=list)
    host: list[float] = field(default_factory=list)
    empty: list[float] = field(default_factory=list)
    fault: str = ""
    cheat: bool = False


class Pairing:
    """Blocks over several lanes, until the protocol says enough."""

    def __init__(self, lanes: Sequence[Lane], protocol: Protocol, judge: Judge, rng: numpy.random.Generator,
                 truth_s: float = 0.0):  # fmt: skip
        self.truth_s = truth_s
        self.lanes, self.protocol, self.judge, self.rng = list(lanes), protocol, judge, rng
        self.stopped = ""
        self.seconds = 0.0
        self.judging = 0.0
        self.dropped = 0
        self.late = 0

    def run(self, progress: Progress = lambda what, done, most: None) -> None:
        """All blocks. Ends early where the candidate is out, or no baseline is left."""
        started = time.monotonic()
        for lane in self.living():
            self._size(lane)
        self._give_head_start([x.host for x in self.lanes])
        while not self.stopped:
            self._block()
            done = len(self.lanes[0].blocks)
            self.seconds = time.monotonic() - started - self.judging
            progress("block", done, self.protocol.blocks_most)
            self.stopped = self._enough(done)
        self._closing()
        self.seconds = time.monotonic() - started

    def living(self) -> list[Lane]:
        return [x for x in self.lanes if not x.fault]

    def _size(self, lane: Lane) -> None:
        """How many calls a turn of this lane makes, from a first turn that counts for nothing."""
        p = self.protocol
        began = time.perf_counter()
        turn = lane.hand.turn(p.calls_least, p.settle_calls, 0)
        lane.host = turn.host
        each = (time.perf_counter() - began) / (p.calls_least + p.settle_calls)
        lane.calls = int(min(p.calls_most, max(p.calls_least, p.turn_seconds / max(each, 1e-9))))
        self._look(lane, [turn])

    def _give_head_start(self, hosts: Sequence[Sequence[float]]) -> bool:
        """Keep the device busy for so long before each call that every arm's is queued by then: the same for all. ``hosts``:
        what the host took, by arm. Whether calls came too late for what they were given."""
        p = self.protocol
        slowest = max((float(numpy.quantile(h, LATEST)) for h in hosts if h), default=0.0)
        held = max(x.hand.head_start for x in self.lanes)
        if p.head_start_margin * slowest <= held or held >= p.head_start_most:
            return False
        for lane in self.lanes:
            lane.hand.head_start = min(p.head_start_most, 2 * p.head_start_margin * slowest)
        return slowest > held

    def _block(self) -> None:
        lanes = self.living()
        samples: dict[str, list[Turn]] = {x.name: [] for x in lanes}
        chosen = lanes[0].hand.feed.choose()  # judged calls of a block get one input, whose truth is worked out once
        looks = self.rng.random() < self._looked_at()
        order = [lanes[i] for i in self.rng.permutation(len(lanes))]  # who comes first or follows itself is luck
        for lane in (*order, *reversed(order)):
            if not lane.fault:
                judged = int(self.rng.integers(lane.calls)) if looks and self.rng.random() < self._share() else None
                samples[lane.name].append(lane.hand.turn(lane.calls, self.protocol.settle_calls, judged, chosen))
        for lane in lanes:
            self._look(lane, samples[lane.name])
        whole = [x for x in lanes if not x.fault]
        found = {x.name: _undisturbed(samples[x.name]) for x in whole}
        if self._give_head_start([t.host for x in whole for t in samples[x.name]]):
            self.late += 1
        elif all(len(times) >= self.protocol.calls_least for times, _ in found.values()):
            for lane in whole:
                times, inner = found[lane.name]
                lane.blocks.append(times)
                lane.cross.append(float(numpy.median(inner)))
        else:
            self.dropped += 1

    def _looked_at(self) -> float:
        """Share of blocks in which anything is judged: less where the truth about a call takes long to work out."""
        p = self.protocol
        affordable = p.judging_share * p.figure_seconds / max(self.truth_s * len(self.lanes), 1e-9)
        return min(1.0, max(affordable, p.judged_blocks_least) / p.blocks_least)

    def _share(self) -> float:
        """Share of turns of which one call is judged."""
        return min(1.0, self.protocol.checks_least / (2 * self.protocol.blocks_least))

    def _look(self, lane: Lane, turns: list[Turn]) -> None:
        """Take note of what happened in turns, and judge what was kept; a fault puts the lane out."""
        for turn in turns:
            if turn.refusal or turn.trouble is not None:
                lane.fault, lane.cheat = turn.refusal or str(turn.trouble), bool(turn.refusal)
                return
            began = time.monotonic()
            for kept in turn.kept:
                lane.fault = lane.fault or self.judge(kept, lane.name)
                lane.checked += 1
            self.judging += time.monotonic() - began
            lane.disturbed += turn.clean.count(False)
            lane.delivery += turn.delivery
            lane.host += turn.host
            lane.empty += turn.empty

    def _closing(self) -> None:
        """One more call of each lane, judged: what drifts after many calls shows at the end."""
        chosen = self.lanes[0].hand.feed.choose()
        for lane in self.living():
            self._look(lane, [lane.hand.turn(1, self.protocol.settle_calls, 0, chosen)])

    def _enough(self, done: int) -> str:
        p = self.protocol
        if self.lanes[0].fault:
            return "the kernel is out"
        if self.seconds > p.figure_seconds and (done >= p.blocks_few or self.seconds > 2 * p.figure_seconds):
            return "time"
        if done < p.blocks_least:
            return ""
        if done >= p.blocks_most:
            return "blocks"
        return "precision" if self.precise() else ""

    def precise(self) -> bool:
        """Whether every ratio's interval is as narrow as the protocol wants."""
        lead = next(x for x in self.lanes if x.name == CANDIDATE)
        others = [x for x in self.living() if x is not lead]
        return all(interval(paired(lead.blocks, x.blocks), self.protocol).half_width <= self.protocol.target
                   for x in others if len(x.blocks) == len(lead.blocks))  # fmt: skip


def _undisturbed(turns: list[Turn]) -> tuple[list[float], list[float]]:
    """The calls of a block during which nobody waited for a processor, by both clocks."""
    rows = [r for t in turns for r in zip(t.times, t.inner, t.clean, strict=True) if r[2]]
    return [r[0] for r in rows], [r[1] for r in rows]


def clock_fault(lane: Lane, protocol: Protocol) -> str:
    """Why a lane's clocks can't both be right; empty if they agree."""
    if not lane.blocks:
        return ""
    mine = float(numpy.median([numpy.median(b) for b in lane.blocks]))
    return clocks_disagree(mine, float(numpy.median(lane.cross)), protocol)
