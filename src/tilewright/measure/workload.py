"""One workload from end to end: open the arms, time them in every state that is asked for, hold the times to the floor."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..kernel import Kernel
from ..prove.examination import Examination
from ..task.task import Workload
from .baselines import Offer
from .figure import assemble
from .floor import floor
from .hand import Source
from .pairing import Lane, Pairing
from .protocol import Protocol
from .record import CANDIDATE, TWIN, Baseline, Cache, Ceilings, Figure, Launch, WorkloadResult
from .stage import Player, Stage, make, secret

if TYPE_CHECKING:
    from ..prove.device.machine import Device

Progress = Callable[[str, int, int], None]


@dataclass
class Setting:
    """What all workloads of a run share."""

    exam: Examination
    problem: str
    kernel: Kernel
    offers: Sequence[Offer]
    protocol: Protocol
    ceilings: Ceilings | None
    caches: tuple[Cache, ...] = ("warm",)
    verdicts: dict[str, Any] = field(default_factory=dict)
    progress: Progress = lambda what, done, most: None
    launches: tuple[Launch, ...] = ("plain",)
    place: Device | None = None


@dataclass
class Played:
    """What came of a workload."""

    result: WorkloadResult
    baselines: tuple[Baseline, ...]
    compile_s: float
    notes: tuple[str, ...] = ()


def name_of(w: Workload) -> str:
    """``M=64, N=512, float32``; what is hidden is so named only once it is spent."""
    parts = [f"{n}={v}" for n, v in w.dims.items()] + [f"{n}={v}" for n, v in w.scalars.items()]
    return ", ".join([*parts, *([w.dtype] if w.dtype else [])]) or "the given shape"


def play(setting: Setting, workload: Workload) -> Played:
    """Time one workload. Raises TaskError where the reference has no result there."""
    cold_bytes = _flush_bytes(setting) if "cold" in setting.caches else 0
    stage = make(setting.exam, setting.problem, workload, setting.protocol, secret(), cold_bytes, setting.place)
    try:
        return _play(setting, workload, stage)
    finally:
        stage.close()


def _play(setting: Setting, workload: Workload, stage: Stage) -> Played:
    p = setting.protocol
    setting.progress("preparing the kernel", 0, p.blocks_most)
    stage.prepare(_sources(setting))
    lead = stage.enter(CANDIDATE, Source(CANDIDATE, kernel=setting.kernel))
    if not lead.ready:
        return Played(_refused(workload, lead), (), lead.ready_s)
    stage.enter(TWIN, Source(TWIN, kernel=setting.kernel))
    for offer in setting.offers:
        setting.progress(f"preparing {offer.name}", 0, p.blocks_most)
        if verdict := setting.verdicts.get(offer.name):
            _unless_accepted(stage, offer, verdict)
        else:
            stage.offer(offer)
    figures: list[Figure] = []
    outs: dict[str, str] = {}
    for launch in setting.launches:
        for cache in setting.caches:
            figure, out = figure_of(setting, stage, cache, launch)
            figures.append(figure)
            outs = {**out, **outs}
    least = floor(setting.exam.sheet, stage.feed.case, stage.output_bytes, setting.ceilings)
    if (arm := figures[0].arm(CANDIDATE)) and arm.time:
        least = least.model_copy(update={"fraction": least.seconds / arm.time.median if least.seconds else None})
    result = WorkloadResult(
        name=name_of(workload), dims=workload.dims, dtype=workload.dtype or "", scalars=workload.scalars,
        kind=workload.kind, figures=tuple(figures), floor=least, answer=figures[0].answer, reason=figures[0].reason,
        refusals=tuple(f"{n}: {why}" for n, why in outs.items()),
    )  # fmt: skip
    bases = tuple(_baseline(setting, o, stage, outs) for o in setting.offers)
    return Played(result, bases, lead.ready_s, stage.notes())


def _sources(setting: Setting) -> dict[str, Source]:
    """All arms that may be timed, by name."""
    wrong = {n for n, v in setting.verdicts.items() if not v.accepted}
    offered = {o.name: o.source for o in setting.offers if o.source is not None and o.name not in wrong}
    return {CANDIDATE: Source(CANDIDATE, kernel=setting.kernel), TWIN: Source(TWIN, kernel=setting.kernel), **offered}


def figure_of(setting: Setting, stage: Stage, cache: Cache, launch: Launch) -> tuple[Figure, dict[str, str]]:
    """Time all arms that are ready, in one state; the figure, and why an arm is out."""
    graph = launch == "graph"
    ready = {x.name: x for x in stage.players if x.ready and (not graph or stage.captured(x))}
    if CANDIDATE not in ready:
        why = "the kernel's call can't be captured as a CUDA graph"
        return Figure(cache=cache, launch=launch, arms=(), noise=0.0, answer="refused", reason=why), {}
    lanes = [Lane(n, stage.hand(x, cold=cache == "cold", graph=graph)) for n, x in ready.items()]
    run = Pairing(lanes, setting.protocol, stage.judge, stage.feed.rng, stage.truth_s)
    run.run(lambda what, done, most: setting.progress(f"{cache}, {launch}, {len(lanes)} arms", done, most))
    least = floor(setting.exam.sheet, stage.feed.case, stage.output_bytes, setting.ceilings, cache)
    return assemble(run, ready, least, setting.protocol, cache=cache, launch=launch)


def _refused(workload: Workload, lead: Player) -> WorkloadResult:
    why = lead.wrong or f"the kernel can't be called for timing: {lead.unavailable}"
    return WorkloadResult(name=name_of(workload), dims=workload.dims, dtype=workload.dtype or "", kind=workload.kind,
                          scalars=workload.scalars, answer="refused", reason=why, refusals=(why,))  # fmt: skip


def _unless_accepted(stage: Stage, offer: Offer, verdict: Any) -> None:
    """A kernel file as a baseline must have been accepted by a whole check."""
    if verdict.accepted:
        stage.offer(offer)
    else:
        stage.players.append(Player(offer.name, wrong=f"{verdict.verdict}: {verdict.reason}"))


def _baseline(setting: Setting, offer: Offer, stage: Stage, outs: dict[str, str]) -> Baseline:
    player = next(x for x in stage.players if x.name == offer.name)
    verdict = setting.verdicts.get(offer.name)
    by = "the reference itself" if offer.kind == "eager" else \
        "a whole check" if verdict is not None else "its outputs at every timed workload"  # fmt: skip
    base = Baseline(name=offer.name, kind=offer.kind, status="right", by=by, path=offer.path,
                    compile_s=player.ready_s or None, verdict=verdict.id if verdict is not None else "")  # fmt: skip
    if player.unavailable:
        return base.model_copy(update={"status": "unavailable", "reason": player.unavailable, "by": ""})
    if why := player.wrong or outs.get(offer.name, ""):
        status = "wrong" if player.wrong or "wrong" in why or "changed its input" in why else "unavailable"
        return base.model_copy(update={"status": status, "reason": why, "by": ""})
    return base


def _flush_bytes(setting: Setting) -> int:
    from . import state

    if setting.place is not None:
        return int(
            setting.protocol.flush_factor * max(setting.ceilings.cache_bytes if setting.ceilings else 0, 64 << 20)
        )
    return int(setting.protocol.flush_factor * state.last_cache())
