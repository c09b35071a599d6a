"""A measurement as a page shows it: the answer first, then what it rests on, then what was refused and why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ...measure.record import CANDIDATE, Ceilings, Figure, Interval, Measurement, WorkloadResult
from .. import noise
from . import facts, forest, roofline, samples, words

SMALL = 1e-9


@dataclass(frozen=True)
class Tile:
    """A number that matters, and what it is."""

    value: str
    name: str
    note: str = ""


@dataclass(frozen=True)
class Refused:
    """What was not counted, and why. ``kind``: refused, noisy, wrong, unavailable."""

    kind: str
    what: str
    why: str


def sentence(m: Measurement) -> str:
    """The answer in words."""
    honest = _honest(m)
    if m.ratio is None or m.answer in ("too noisy", "refused"):
        return m.reason or m.answer
    level = words.percent(m.ratio.level)
    if m.answer == "no measurable gain":
        return (f"{words.times(m.ratio.median)} the speed of {honest} ({level} interval {words.span(m.ratio)}): "
                f"no difference within the noise of ±{words.percent(m.noise, 1)}.")  # fmt: skip
    return f"{words.times(m.ratio.median)} the speed of {honest}, {level} interval {words.span(m.ratio)}."


def losses(m: Measurement) -> str:
    """Where an answer hides that the kernel is slower; empty if it is nowhere."""
    slow = [(words.dims(w.dims) or w.name, r.interval.median) for w in m.workloads if w.figure and w.answer == "slower"
            for r in [w.figure.ratio()] if r]  # fmt: skip
    if m.answer == "slower" or not slow:
        return ""
    return "Slower at " + ", ".join(f"{name} ({words.times(value)})" for name, value in slow) + "."


def _honest(m: Measurement) -> str:
    names = list(dict.fromkeys(w.figure.honest for w in m.workloads if w.figure and w.figure.honest))
    if not names:
        return "the baseline"
    right = sum(b.status == "right" for b in m.baselines)
    named = names[0] if len(names) == 1 else "the fastest right baseline of each workload"
    return f"{named}, the fastest of {right} right baselines" if len(names) == 1 and right > 1 else named


def tiles(m: Measurement) -> list[Tile]:
    """The few numbers beside the answer; none where nothing may be stated."""
    if m.answer in ("too noisy", "refused"):
        return []
    first = next((w for w in m.workloads if w.figure and w.figure.arm(CANDIDATE)), None)
    made = []
    if m.ratio is not None:
        note = f"{words.percent(m.ratio.level)} interval {words.span(m.ratio)}"
        made.append(Tile(words.times(m.ratio.median), "speed", note))
    if first is not None and first.figure is not None and (arm := first.figure.arm(CANDIDATE)) is not None and arm.time:
        made.append(Tile(words.seconds(arm.time.median), "kernel", words.dims(first.dims) or first.name))
    near = [n.fraction for n in roofline.nearness(m.workloads)]
    if near:
        low, high = words.percent(min(near)), words.percent(max(near))
        shown = low if low == high else f"{low}{words.DASH}{high}"
        made.append(Tile(shown, "of the floor's speed", "the least time that this machine allows"))
    shown, _, why = noise.of_measurement(m).partition(": ")
    made.append(Tile(shown, "noise", f"below this nothing is called a gain: {why}"))
    return made


@dataclass(frozen=True)
class Line:
    """A workload in the table."""

    w: WorkloadResult
    name: str
    kernel: str
    honest: str
    honest_time: str
    ratio: str
    range: str
    floor: str
    bound: str
    extra: str


def lines(workloads: Sequence[WorkloadResult]) -> list[Line]:
    return [_line(w) for w in workloads]


def _line(w: WorkloadResult) -> Line:
    f = w.figure
    kernel, base = (f.arm(CANDIDATE), f.arm(f.honest)) if f else (None, None)
    ratio = f.ratio() if f else None
    near = next(iter(roofline.nearness([w])), None)
    extra = words.size(kernel.extra_bytes) if kernel and kernel.extra_bytes is not None else words.UNKNOWN
    return Line(
        w, words.dims(w.dims) or w.name, words.time_span(kernel.time if kernel else None), f.honest if f else "",
        words.time_span(base.time if base else None), words.times(ratio.interval.median) if ratio else words.UNKNOWN,
        words.span(ratio.interval) if ratio else "", words.percent(near.fraction) if near else words.UNKNOWN,
        near.bound if near else "", extra,
    )  # fmt: skip


@dataclass(frozen=True)
class State:
    """Another state of caches or way to launch, as a line."""

    name: str
    decides: bool
    figure: Figure
    rows: forest.Forest | None


def states(w: WorkloadResult, void: bool = False) -> list[State]:
    """All figures of a workload, each with a forest of its own."""
    return [State(state_name(f), i == 0, f, forest.forest(forest.figure_rows(f, "", void)) if f.ratios else None)
            for i, f in enumerate(w.figures)]  # fmt: skip


def state_name(f: Figure) -> str:
    """State of the caches and way to launch, in words."""
    return f"{f.cache} cache, {'CUDA graph replay' if f.launch == 'graph' else 'plain launch'}"


def refused(m: Measurement) -> list[Refused]:
    """Everything that was not taken at its word."""
    made = [Refused("refused", "the measurement", r) for r in m.refusals]
    for w in m.workloads:
        name = words.dims(w.dims) or w.name
        made += [Refused("refused", name, r) for r in w.refusals if r not in m.refusals]
        for f in w.figures:
            state = f"{name}, {f.cache}, {f.launch}"
            if loud := [f"against {r.baseline}, {r.reason}" for r in f.ratios if r.answer == "too noisy"]:
                made.append(Refused("noisy", state, "; ".join(loud)))
            if f.answer == "refused" and f.reason and f.reason not in (*m.refusals, *w.refusals):
                made.append(Refused("refused", state, f.reason))
    disturbed = sum(a.disturbed for w in m.workloads for f in w.figures for a in f.arms)
    if disturbed:
        why = f"{words.plural(disturbed, 'call')}, because something else had the processor meanwhile"
        made.append(Refused("disturbed", "calls", why))
    made += [Refused(b.status, f"baseline {b.name}", b.reason) for b in m.baselines if b.status != "right"]
    return made


def ceilings(c: Ceilings | None) -> list[tuple[str, str]]:
    """What the machine was measured to do."""
    if c is None:
        return []
    rows = [("device", c.name or c.device)]
    rows += [(f"read, {words.size(n)}", words.bandwidth(v)) for n, v in sorted(c.read.items())]
    rows += [(f"copy, {words.size(n)}", words.bandwidth(v)) for n, v in sorted(c.copy_.items())]
    rows += [(f"rate, {d}", words.rate(v)) for d, v in c.rates.items()]
    rows += [("an empty call", words.seconds(c.launch))] if c.launch is not None else []
    rows += [("last cache", words.size(c.cache_bytes))] if c.cache_bytes else []
    return [*rows, ("threads", str(c.threads)), ("method", c.method), ("measured", words.moment(c.measured))]


def provenance(m: Measurement) -> list[tuple[str, str]]:
    """What makes the record one of its kind."""
    contract = f"{m.contract[:16]} ({m.mode})" if m.contract else m.mode
    kind = "attempt" if m.void else "measurement"
    rows = [(kind, m.id), ("verdict", m.verdict), ("kernel", m.kernel_sha256[:16]), ("task", m.task_sha256[:16]),
            ("contract", contract), ("device class", m.device_class),
            ("protocol", f"{m.protocol_version}, {m.protocol[:16]}"),
            ("measured", words.moment(m.created)), ("took", words.seconds(m.seconds)),
            ("compilation", words.seconds(m.compile_s) if m.compile_s is not None else ""),
            ("tuning", words.seconds(m.tune_s) if m.tune_s is not None else ""),
            ("variation of the paired ratio", words.percent(m.variation, 2) if m.variation is not None else "")]  # fmt: skip
    return [(k, v) for k, v in rows if v] + facts.versions(m.versions)


def view(m: Measurement) -> dict[str, Any]:
    """Everything that the template needs."""
    rows = forest.ratios(m)
    return {
        "m": m, "sentence": sentence(m), "tiles": tiles(m), "lines": lines(m.workloads), "refused": refused(m),
        "forest": forest.forest(rows) if rows else None, "hollow": any(r.mark for r in rows),
        "roofline": roofline.chart(m), "losses": losses(m),
        "nearness": roofline.nearness(m.workloads), "share_axis": roofline.share_axis(),
        "details": [(w, words.dims(w.dims) or w.name, samples.samples(w.figure) if w.figure else None,
                     samples.course(w.figure) if w.figure else None, states(w, m.answer == "refused"))
                    for w in m.workloads], "band": noise.of_figure,
        "state": facts.pairs(m.state), "ceilings": [r for r in ceilings(m.ceilings) if r[1]], "provenance": provenance(m),
        "times": [(b, words.seconds(b.compile_s) if b.compile_s is not None else "", _time(m, b.name)) for b in m.baselines],
    }  # fmt: skip


def _time(m: Measurement, name: str) -> str:
    """The arm's time at the first workload."""
    arm = next((a for w in m.workloads if w.figure for a in [w.figure.arm(name)] if a is not None), None)
    time: Interval | None = arm.time if arm else None
    return words.time_span(time) if time else ""
