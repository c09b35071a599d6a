"""One candidate against the yardstick on one workload: blocks of interleaved turns by the protocol of ``measure``, shorter.

Each call opens new sealed children over shared memory, feeds both arms the same kind of never-repeated input, judges
outputs of secretly picked timed calls, and holds clocks and floor to account; only the lengths differ from ``bench``.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from typing import Any

import numpy

from ..kernel import Kernel
from ..measure.figure import fault
from ..measure.floor import floor
from ..measure.hand import Source
from ..measure.pairing import Lane, Pairing
from ..measure.protocol import PROTOCOL
from ..measure.protocol import Protocol as Rules
from ..measure.record import CANDIDATE, Interval
from ..measure.stage import Stage, make, secret
from ..measure.statistics import block_medians, combined, paired
from ..measure.workload import name_of
from ..prove.examination import Examination
from ..task.task import Workload
from .tree import Failure, Kind

YARDSTICK = "yardstick"


def _rules(name: str, least: int, most: int, seconds: float, turn: float) -> Rules:
    changes = {"version": f"{PROTOCOL.version}-search-{name}", "blocks_least": least, "blocks_most": most,
               "blocks_few": min(least, 3), "figure_seconds": seconds, "turn_seconds": turn, "checks_least": 3,
               "calls_least": 3}  # fmt: skip
    return PROTOCOL.model_copy(update=changes)


QUICK = _rules("quick", 5, 6, 2.0, 0.003)
FULL = _rules("full", 10, 20, 4.0, 0.006)
ROUND = _rules("round", 3, 4, 2.0, 0.003)


@dataclass(frozen=True)
class Pair:
    """Ratio of the yardstick's time over the candidate's, block by block, and the candidate's median seconds."""

    ratios: numpy.ndarray
    seconds: float

    @property
    def log(self) -> float:
        return math.log(float(numpy.median(self.ratios)))


TRIES = 3
"""How often a pair is timed anew where other work had the processors."""


def pair(exam: Examination, problem: str, kernel: Kernel, yardstick: Kernel | None, workload: Workload, rules: Rules,
         tops: Any, place: Any = None) -> Pair | Failure:  # fmt: skip
    """Time ``kernel`` beside ``yardstick`` (None: the reference itself); again where the machine was too busy."""
    for _ in range(TRIES):
        found = _once(exam, problem, kernel, yardstick, workload, rules, tops, place)
        if isinstance(found, Pair) or found.kind != "unstable":
            break
    return found


def _once(exam: Examination, problem: str, kernel: Kernel, yardstick: Kernel | None, workload: Workload, rules: Rules,
         tops: Any, place: Any = None) -> Pair | Failure:  # fmt: skip
    """Who goes first is drawn by coin. ``place``: the device, None for the CPU."""
    held = _held(exam, problem, yardstick)
    sources = [Source(CANDIDATE, kernel=kernel), held]
    random.SystemRandom().shuffle(sources)
    stage = make(exam, problem, workload, rules, secret(), 0, place)
    try:
        for source in sources:
            player = stage.enter(source.name, source)
            if not player.ready:
                return _unready(source.name, player.wrong, player.unavailable)
        lanes = [Lane(p.name, stage.hand(p)) for p in stage.players]
        run = Pairing(lanes, rules, stage.judge, stage.feed.rng, stage.truth_s)
        run.run()
        return _outcome(run, stage, exam, rules, tops)
    finally:
        stage.close()


def _held(exam: Examination, problem: str, yardstick: Kernel | None) -> Source:
    """The yardstick as a source: a kernel, or the reference as it stands."""
    if yardstick is not None:
        return Source(YARDSTICK, kernel=yardstick)
    return Source(YARDSTICK, problem=problem, options=exam.sheet.extra.get("opened", {}))


def _outcome(run: Pairing, stage: Stage, exam: Examination, rules: Rules, tops: Any) -> Pair | Failure:
    lanes = {x.name: x for x in run.lanes}
    lead, other = lanes[CANDIDATE], lanes[YARDSTICK]
    least = floor(exam.sheet, stage.feed.case, stage.output_bytes, tops)
    if why := fault(lead, least, rules, other):
        return Failure(kind=_kind(lead, why), message=why)
    if why := fault(other, least, rules):
        return Failure(kind="unstable", message=f"the yardstick could not be timed beside it: {why}")
    if len(lead.blocks) < rules.blocks_few:
        return Failure(kind="unstable", message=f"only {len(lead.blocks)} undisturbed blocks came together: other work has "
                                                "the processors")  # fmt: skip
    return Pair(paired(lead.blocks, other.blocks), float(numpy.median(block_medians(lead.blocks))))


def _unready(name: str, wrong: str, unavailable: str) -> Failure:
    if name == YARDSTICK:
        return Failure(kind="unstable", message=f"the yardstick can't be timed: {wrong or unavailable}")
    if wrong:
        return Failure(kind="wrong", message=f"wrong where it is timed: {wrong}")
    return Failure(kind="launch", message=f"it can't be called for timing: {unavailable}")


def _kind(lane: Lane, why: str) -> Kind:
    if "compulsory work" in why:
        return "over floor"
    if lane.cheat or "clocks disagree" in why or "when they are looked at" in why:
        return "cheating"
    if "wrong" in why or "changed its input" in why:
        return "wrong"
    return "timeout" if "timeout" in why or "longer than" in why else "launch"


def joined(rows: list[numpy.ndarray]) -> Interval:
    """Geometric mean over workloads of the median ratio, with its interval."""
    return combined(rows, QUICK)


__all__ = ["FULL", "PROTOCOL", "QUICK", "ROUND", "Pair", "joined", "name_of", "pair"]
