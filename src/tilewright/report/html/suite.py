"""A suite as a page: scores, the curve of fast_p, every kernel's speed with its interval, categories, losses, what is not
counted."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from ...measure.protocol import PROTOCOL
from ...measure.record import Interval
from ...suite import Done
from ...suite.scores import Result, Share, categories, fast_p, losses, roofline, transfer
from . import draw, forest, words

HEIGHT = 190.0


@dataclass(frozen=True)
class Score:
    """A number of the table, with what it is."""

    name: str
    value: str
    surely: str
    what: str


def share(s: Share) -> str:
    """A share, as a range where not all was measured."""
    if not s.of or math.isnan(s.value):
        return words.UNKNOWN
    return words.percent(s.value, 1) if s.known else f"{words.percent(s.value, 1)} to {words.percent(s.most, 1)}"


def scores(rows: Sequence[Result], thresholds: Sequence[float]) -> list[Score]:
    """fast_p at every threshold, roofline, transfer."""
    made = []
    for p in thresholds:
        what = (
            "right" if p == 0 else f"right and faster than {'the baseline' if p == 1 else f'{p:g} times the baseline'}"
        )
        made.append(
            Score(f"fast_{p:g}", share(fast_p(rows, p)), share(fast_p(rows, p, surely=True)) if p else "", what)
        )
    made.append(
        Score("roofline", share(roofline(rows)), "", "weighted share of the floor's speed; what is not right counts 0")
    )
    moved = transfer(rows)
    low, high = moved.interval
    tried = f"{moved.holds} of {words.plural(moved.wins, 'win')} hold on hidden workloads"
    what = f"{tried} (95% interval {low:.0%} to {high:.0%})" if moved.wins else "no win was tried on hidden workloads"
    return [*made, Score("transfer", words.percent(moved.rate), "", what)]


def curve(rows: Sequence[Result]) -> Markup | None:
    """fast_p over p: the share at its least as a line, what is open above it shaded. None where nothing was measured."""
    speeds = sorted(r.speedup for r in rows if r.right and r.measured and math.isfinite(r.speedup))
    if not speeds:
        return None
    xs = draw.around([*speeds, 0.5, 2.0], log=True, margin=0.1)
    ys = draw.Scale(0, 1, down=True)
    parts = [draw.line(xs.at(t), 0, xs.at(t), 100, "one" if t == 1 else "grid") for t in draw.ratio_ticks(xs)]
    parts += [draw.text(xs.at(t), 100, f"{t:g}×", "tick", draw.anchor(xs.at(t)), dy=15) for t in draw.ratio_ticks(xs)]
    for t in (0.0, 0.25, 0.5, 0.75, 1.0):
        parts += [
            draw.line(0, ys.at(t), 100, ys.at(t), "grid"),
            draw.text(0, ys.at(t), f"{t:.0%}", "tick", "end", dx=-7, dy=4),
        ]
    parts += _steps(rows, [xs.low, *speeds, xs.high], xs, ys)
    return draw.svg(
        parts, HEIGHT, f"share of problems faster than p, {words.plural(len(speeds), 'measured kernel')}", "plane"
    )


def _steps(rows: Sequence[Result], edges: Sequence[float], xs: draw.Scale, ys: draw.Scale) -> list[Markup]:
    parts, before = [], None
    for a, b in itertools.pairwise(edges):
        s = fast_p(rows, math.sqrt(a * b))
        x1, x2, y = xs.at(a), xs.at(b), ys.at(s.value)
        if not s.known:
            parts.append(draw.band(x1, x2, "noise", ys.at(s.most), y - ys.at(s.most)))
        parts.append(draw.line(x1, y, x2, y, "step"))
        if before is not None:
            parts.append(draw.line(x1, before, x1, y, "step"))
        before = y
    return parts


def speeds(rows: Sequence[Result]) -> forest.Forest | None:
    """Every measured kernel, the slowest first."""
    measured = [r for r in rows if r.right and r.measured and math.isfinite(r.speedup)]
    if not measured:
        return None
    made = []
    for r in sorted(measured, key=lambda r: r.speedup):
        low, high = r.interval
        ratio = Interval(low=low, median=r.speedup, high=high, level=PROTOCOL.level)
        made.append(forest.Row(r.problem, r.category, ratio, r.answer, PROTOCOL.smallest_effect, honest=True))
    return forest.forest(made)


def not_counted(rows: Sequence[Result]) -> list[tuple[str, str, str]]:
    """Word, problem and reason of what is not right."""
    return [(r.verdict if r.verdict != "accept" else r.answer, r.problem, f"{r.cls}: {r.reason}" if r.cls else r.reason)
            for r in rows if not r.right]  # fmt: skip


def lost(rows: Sequence[Result]) -> list[tuple[str, str]]:
    """Problem, and the workloads at which its kernel is slower."""
    return [(r.problem, ", ".join(f"{t.workload} {words.times(t.speedup)}" for t in r.timings if t.high < 1)
             or words.times(r.speedup)) for r in losses(rows)]  # fmt: skip


def view(done: Done, thresholds: Sequence[float]) -> dict[str, Any]:
    """Everything that the template needs."""
    methods = []
    for i, name in enumerate(done.methods, 1):
        rows = done.results(name)
        methods.append({
            "name": name, "anchor": f"s{i}", "scores": scores(rows, thresholds), "curve": curve(rows),
            "speeds": speeds(rows),
            "categories": [(c, share(c.fast_1), share(c.roofline), words.times(c.speedup)) for c in categories(rows)],
            "lost": lost(rows), "not_counted": not_counted(rows), "right": share(fast_p(rows, 0)),
            "fast": share(fast_p(rows, 1)), "pending": [(r.problem, r.reason) for r in rows if r.pending],
        })  # fmt: skip
    return {
        "suite": done.suite,
        "methods": methods,
        "strays": [(p.name, why) for p, why in done.pairing.strays.items()],
    }
