"""Roofline: what was reached against what this machine was measured to do (Williams, Waterman, Patterson, 2009).

Workloads with operations and a known rate lie on the usual plane, operations a second over operations a byte. Where the
arithmetic is not known, the floor is memory alone and a bar per workload says how near it the kernel came.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from ...measure.record import CANDIDATE, Interval, Measurement, WorkloadResult
from . import draw, words

HEIGHT = 300.0


@dataclass(frozen=True)
class Point:
    """One arm at one workload; ``low`` and ``high`` are the ends of its error bar, in operations a second."""

    label: str
    kind: str
    intensity: float
    low: float
    value: float
    high: float


@dataclass(frozen=True)
class Nearness:
    """A bar: floor over time, with its interval."""

    label: str
    fraction: float
    low: float
    high: float
    bound: str
    track: Markup


def points(m: Measurement) -> list[Point]:
    """The kernel and the honest baseline at every workload that can be placed."""
    found = []
    for w in m.workloads:
        if w.floor is None or w.figure is None or not w.floor.flops or not w.floor.bytes or not w.floor.rate:
            continue
        for name, kind in ((CANDIDATE, "kernel"), (w.figure.honest, "baseline")):
            arm = w.figure.arm(name)
            if arm is not None and arm.time is not None:
                shown = "kernel" if kind == "kernel" else name
                found.append(_point(f"{shown}, {words.dims(w.dims) or w.name}", kind, w, arm.time))
    return found


def _point(label: str, kind: str, w: WorkloadResult, time: Interval) -> Point:
    assert w.floor is not None
    low, value, high = (w.floor.flops / t for t in (time.high, time.median, time.low))
    return Point(label, kind, w.floor.flops / w.floor.bytes, low, value, high)


def chart(m: Measurement) -> Markup | None:
    """The plane; None where nothing can be placed on it."""
    found = points(m)
    floors = [w.floor for w in m.workloads if w.floor is not None]
    roofs = {(f.bandwidth, f.rate) for f in floors if f.rate and f.bandwidth}
    if not found or not roofs:
        return None
    ridges = [rate / width for width, rate in roofs]
    lowest = min(p.low for p in found)
    xs = draw.around([p.intensity for p in found] + [r * f for r in ridges for f in (0.4, 2.5)], log=True)
    tops = [rate for _, rate in roofs]
    ys = draw.around([p.high for p in found] + [lowest / 2, max(tops) * 1.3], log=True, down=True)
    left = sum(xs.at(p.intensity) < 50 for p in found) * 2 > len(found)
    parts = [
        *_grid(xs, ys, max(tops), "end" if left else "start"),
        *(line for roof in sorted(roofs) for line in _roof(*roof, xs, ys)),
    ]
    parts += _roof_words(max(roofs), xs, ys)
    parts += [mark for p in sorted(found, key=lambda p: p.kind) for mark in _mark(p, xs, ys)]
    return draw.svg(parts, HEIGHT, f"roofline of {words.plural(len(found), 'point')}", "plane")


def _grid(xs: draw.Scale, ys: draw.Scale, top: float, side: str) -> list[Markup]:
    """Lines and their words; those of the rate stand on the ``side`` where fewer points are."""
    parts = []
    for t in draw.decade_ticks(xs):
        x = xs.at(t)
        parts += [draw.line(x, 0, x, 100, "grid"), draw.text(x, 100, f"{t:g}", "tick", draw.anchor(x), dy=15)]
    edge, away = (100, -4) if side == "end" else (0, 2)
    for t in draw.decade_ticks(ys):
        y = ys.at(t)
        if 8 < y < 97 and abs(y - ys.at(top)) > 8:
            said = draw.text(edge, y, words.rate(t, 1), "tick", side, dx=away, dy=-4)
            parts += [draw.line(0, y, 100, y, "grid"), said]
    return [*parts, draw.text(100, 100, "FLOP/B", "tick", "end", dy=30)]


def _roof(width: float, rate: float, xs: draw.Scale, ys: draw.Scale) -> list[Markup]:
    """The slope of memory up to the ridge, then the flat roof, both cut to the chart."""
    ridge = rate / width
    start = max(xs.low, ys.low / width)
    return [draw.line(xs.at(start), ys.at(start * width), xs.at(ridge), ys.at(rate), "roof"),
            draw.line(xs.at(ridge), ys.at(rate), 100, ys.at(rate), "roof")]  # fmt: skip


def _roof_words(roof: tuple[float, float], xs: draw.Scale, ys: draw.Scale) -> list[Markup]:
    width, rate = roof
    said = f"{words.rate(rate)}, {words.bandwidth(width)}"
    return [draw.text(100, ys.at(rate), said, "tick strong", "end", dx=-4, dy=-6)]


def _mark(p: Point, xs: draw.Scale, ys: draw.Scale) -> list[Markup]:
    x, colour = xs.at(p.intensity), "accent" if p.kind == "kernel" else "muted"
    reached = f"{words.rate(p.value)} ({words.rate(p.low)} to {words.rate(p.high)})"
    said = f"{p.label}: {reached} at {words.digits(p.intensity)} FLOP/B"
    fill = "full" if p.kind == "kernel" else "hollow"
    return [draw.line(x, ys.at(p.low), x, ys.at(p.high), f"whisker {colour}"),
            draw.dot(x, ys.at(p.value), 5, f"point {colour} {fill}", said)]  # fmt: skip


def nearness(workloads: Sequence[WorkloadResult]) -> list[Nearness]:
    """How near each workload came to its floor."""
    found: list[Nearness] = []
    for w in workloads:
        arm = w.figure.arm(CANDIDATE) if w.figure else None
        if w.floor is None or arm is None or arm.time is None:
            continue
        low, mid, high = (w.floor.seconds / t for t in (arm.time.high, arm.time.median, arm.time.low))
        name = words.dims(w.dims) or w.name
        found.append(Nearness(name, mid, low, high, w.floor.bound, _bar(name, low, mid, high)))
    return found


def _bar(label: str, low: float, mid: float, high: float) -> Markup:
    scale = draw.Scale(0, 1.1)
    parts = [draw.line(scale.at(t), 0, scale.at(t), 100, "grid") for t in (0.25, 0.5, 0.75)]
    parts += [draw.band(0, scale.at(mid), "fill", 28, 44), draw.line(scale.at(1), 0, scale.at(1), 100, "roof"),
              draw.line(scale.at(low), 50, scale.at(high), 50, "whisker ink")]  # fmt: skip
    return draw.svg(parts, 26, f"{label}: {words.percent(mid)} of the floor's speed", "track")


def share_axis() -> Markup:
    """Below the bars."""
    scale = draw.Scale(0, 1.1)
    shown = ((0, "0"), (0.5, "50%"), (1.0, "floor"))
    parts = [
        draw.text(scale.at(t), 70, s, "tick strong" if t == 1 else "tick", draw.anchor(scale.at(t))) for t, s in shown
    ]
    return draw.svg(parts, 22, "axis: floor over time", "axis")
