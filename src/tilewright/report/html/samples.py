"""Samples: the distribution of every arm's timed calls, and how the paired ratio went from block to block."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from markupsafe import Markup

from ...measure.record import CANDIDATE, TWIN, Arm, Figure
from . import draw, words

CUT = 0.995
"""Samples beyond this share of all are not in sight; how many, is said."""


@dataclass(frozen=True)
class Spread:
    """One arm's distribution, drawn."""

    name: str
    what: str
    arm: Arm
    count: int
    beyond: int
    track: Markup


@dataclass(frozen=True)
class Samples:
    """All arms of a figure on one scale of time."""

    spreads: Sequence[Spread]
    axis: Markup


def samples(figure: Figure) -> Samples | None:
    """The arms with samples, the kernel first; None if there are none."""
    arms = [a for a in figure.arms if any(a.blocks)]
    if not arms:
        return None
    arms.sort(key=lambda a: (a.name != CANDIDATE, a.name == TWIN, a.time.median if a.time else 0.0))
    every = sorted(s for a in arms for b in a.blocks for s in b)
    top = max(_quantile(sorted(s for b in a.blocks for s in b), CUT) for a in arms)
    scale = draw.around([every[0], top])
    ticks = draw.plain_ticks(scale)
    return Samples([_spread(a, figure, scale, ticks) for a in arms], _axis(scale, ticks))


def _quantile(ordered: Sequence[float], share: float) -> float:
    return ordered[min(int(share * len(ordered)), len(ordered) - 1)]


def _spread(arm: Arm, figure: Figure, scale: draw.Scale, ticks: Sequence[float]) -> Spread:
    flat = [s for b in arm.blocks for s in b]
    colour = "accent" if arm.name in (CANDIDATE, TWIN) else "muted"
    parts = [draw.line(scale.at(t), 0, scale.at(t), 100, "grid") for t in ticks]
    parts.append(draw.hill(draw.density(flat, scale), f"hill {colour}"))
    if arm.time is not None:
        parts += [draw.band(scale.at(arm.time.low), scale.at(arm.time.high), f"interval {colour}", 20, 60),
                  draw.line(scale.at(arm.time.median), 10, scale.at(arm.time.median), 90, "median")]  # fmt: skip
    said = f"{arm.name}: {words.plural(len(flat), 'sample')}, median {words.time_span(arm.time)}"
    beyond = sum(s > scale.high for s in flat)
    return Spread(arm.name, _what(arm.name, figure), arm, len(flat), beyond, draw.svg(parts, 40, said, "track"))


def _what(name: str, figure: Figure) -> str:
    if name == CANDIDATE:
        return "the kernel"
    if name == TWIN:
        return "the kernel again (A/A)"
    return "honest baseline" if name == figure.honest else "baseline"


def _axis(scale: draw.Scale, ticks: Sequence[float]) -> Markup:
    parts = [draw.text(scale.at(t), 70, words.seconds(t), "tick", draw.anchor(scale.at(t))) for t in ticks]
    return draw.svg(parts, 22, "axis: time of a call", "axis")


def block_ratios(figure: Figure) -> list[float]:
    """Honest baseline's over kernel's block median, block by block."""
    kernel, base = figure.arm(CANDIDATE), figure.arm(figure.honest)
    if kernel is None or base is None:
        return []
    return [
        median(b) / median(k) for k, b in zip(kernel.blocks, base.blocks, strict=False) if k and b and median(k) > 0
    ]


def course(figure: Figure) -> Markup | None:
    """The paired ratio from block to block, the noise band around 1; None for fewer than two blocks."""
    ratios = block_ratios(figure)
    ratio = figure.ratio()
    if len(ratios) < 2 or ratio is None:
        return None
    low, high = 1 / (1 + figure.noise), 1 + figure.noise
    ys = draw.around([*ratios, low, high], log=True, down=True)
    parts = [draw.band(0, 100, "noise", ys.at(high), ys.at(low) - ys.at(high))]
    for t in draw.ratio_ticks(ys, 4):
        parts += [draw.line(0, ys.at(t), 100, ys.at(t), "one" if t == 1 else "grid"),
                  draw.text(0, ys.at(t), f"{t:g}×", "tick", "end", dx=-7, dy=4)]  # fmt: skip
    parts.append(draw.line(0, ys.at(ratio.interval.median), 100, ys.at(ratio.interval.median), "roof"))
    step = 100 / len(ratios)
    parts += [draw.dot((i + 0.5) * step, ys.at(r), 2.6, "point accent full", f"block {i + 1}: {words.times(r)}")
              for i, r in enumerate(ratios)]  # fmt: skip
    return draw.svg(parts, 130, f"ratio to {figure.honest} in {words.plural(len(ratios), 'block')}", "plane")
