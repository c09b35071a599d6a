"""Forest plot: ratios with their intervals on one logarithmic scale, the noise band around 1 behind them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from ...measure.record import Figure, Interval, Measurement
from . import draw, words

VOID = ("too noisy", "refused")
COLOURS = {"faster": "good", "slower": "bad", "no measurable gain": "even", "too noisy": "warn", "refused": "warn"}


@dataclass(frozen=True)
class Row:
    """One ratio. ``honest``: it is the one that decides; ``whole``: over all workloads."""

    label: str
    under: str
    ratio: Interval
    answer: str
    noise: float
    honest: bool = False
    whole: bool = False
    group: str = ""

    @property
    def colour(self) -> str:
        return COLOURS.get(self.answer, "even")

    @property
    def mark(self) -> str:
        """The word that says that this ratio claims nothing; empty for one that does."""
        return self.answer if self.answer in VOID else ""

    @property
    def value(self) -> str:
        return words.times(self.ratio.median)

    @property
    def range(self) -> str:
        return words.span(self.ratio)


@dataclass(frozen=True)
class Forest:
    """Rows with their tracks drawn, and the axis below."""

    rows: Sequence[tuple[Row, Markup]]
    axis: Markup


def forest(rows: Sequence[Row]) -> Forest:
    """All rows on one scale; 1 is always in sight."""
    ends = [e for r in rows for e in (r.ratio.low, r.ratio.high, 1 - 1.3 * r.noise, 1 + 1.3 * r.noise)]
    scale = draw.around([*ends, 0.97, 1.03], log=True)
    ticks = draw.ratio_ticks(scale)
    return Forest([(r, _track(r, scale, ticks)) for r in rows], _axis(scale, ticks))


def _track(row: Row, scale: draw.Scale, ticks: Sequence[float]) -> Markup:
    low, mid, high = (scale.at(v) for v in (row.ratio.low, row.ratio.median, row.ratio.high))
    parts = [draw.band(scale.at(1 / (1 + row.noise)), scale.at(1 + row.noise), "noise")]
    parts += [draw.line(scale.at(t), 0, scale.at(t), 100, "one" if t == 1 else "grid") for t in ticks]
    weight = "strong" if row.honest or row.whole else "faint"
    line, fill = ("void ", "hollow") if row.mark else ("", "full")
    parts += [draw.line(low, 50, high, 50, f"whisker {line}{row.colour} {weight}"),
              draw.dot(mid, 50, 5 if weight == "strong" else 3.5, f"point {row.colour} {fill} {weight}")]  # fmt: skip
    said = f"{row.label}: {row.value}, {words.percent(row.ratio.level)} interval {row.range}, {row.answer}"
    return draw.svg(parts, 30, said, "track")


def _axis(scale: draw.Scale, ticks: Sequence[float]) -> Markup:
    parts = []
    for t in ticks:
        x = scale.at(t)
        parts.append(draw.text(x, 70, f"{t:g}×", "tick strong" if t == 1 else "tick", draw.anchor(x)))
    return draw.svg(parts, 22, "axis: baseline time over kernel time, logarithmic", "axis")


def ratios(m: Measurement) -> list[Row]:
    """The ratio of every workload to every right baseline, in the deciding state; the whole first if there are several."""
    rows = []
    timed = [w for w in m.workloads if w.figure is not None and w.figure.ratios]
    if m.ratio is not None and len(timed) > 1:
        rows.append(Row("all workloads", "to the honest baseline of each", m.ratio, m.answer, m.noise, whole=True))
    for w in timed:
        assert w.figure is not None
        name = (words.dims(w.dims) or w.name) + (" (hidden)" if w.kind == "hidden" else "")
        rows += figure_rows(w.figure, name, void=m.answer == "refused")
    return rows


def figure_rows(figure: Figure, group: str, void: bool = False) -> list[Row]:
    """One figure's ratios, the honest baseline first. ``void``: the whole was refused, so that none of them counts."""
    ordered = sorted(figure.ratios, key=lambda r: (r.baseline != figure.honest, r.interval.median))
    return [Row(f"vs {r.baseline}", group, r.interval, "refused" if void else r.answer, figure.noise,
                r.baseline == figure.honest, group=group) for r in ordered]  # fmt: skip
