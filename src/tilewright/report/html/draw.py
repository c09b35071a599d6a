"""Drawing: SVG whose coordinates are percentages, so that a chart fills whatever width there is and its letters keep
their size on a phone. Everything that reaches a page goes through ``markupsafe``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from markupsafe import Markup, escape

RATIOS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.25, 0.33, 0.5, 0.67, 0.8, 0.9, 0.95, 0.97, 0.98, 0.99, 1.0, 1.01, 1.02, 1.03,
          1.05, 1.1, 1.25, 1.5, 2.0, 3.0, 4.0, 5.0, 8.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0)  # fmt: skip


@dataclass(frozen=True)
class Scale:
    """Values to percent of the width (or height, if ``down``)."""

    low: float
    high: float
    log: bool = False
    down: bool = False

    def at(self, value: float) -> float:
        """Percent, cut to the chart."""
        low, high, v = (math.log(max(x, 1e-300)) if self.log else x for x in (self.low, self.high, value))
        share = 0.5 if high <= low else min(max((v - low) / (high - low), 0.0), 1.0)
        return 100 * (1 - share if self.down else share)


def around(values: Iterable[float], *, log: bool = False, margin: float = 0.06, down: bool = False) -> Scale:
    """A scale over all finite ``values`` with a margin; of one value, a tenth around it."""
    kept = [v for v in values if math.isfinite(v) and (v > 0 or not log)]
    low, high = (min(kept), max(kept)) if kept else (0.5, 2.0)
    if log:
        spread = max(math.log(high / low), 0.1)
        return Scale(low * math.exp(-margin * spread), high * math.exp(margin * spread), True, down)
    spread = max(high - low, 0.1 * abs(high), 1e-300)
    return Scale(low - margin * spread, high + margin * spread, False, down)


def ratio_ticks(scale: Scale, most: int = 6) -> list[float]:
    """Round ratios on a logarithmic scale, 1 always among them where it is in range, not crowded."""
    inside = [t for t in RATIOS if scale.low <= t <= scale.high]
    kept = [t for t in inside if t == 1.0]
    for t in sorted(inside, key=lambda t: (not _round(t), abs(math.log(t)))):
        if len(kept) < most and all(abs(scale.at(t) - scale.at(k)) > 100 / (most + 2) for k in kept):
            kept.append(t)
    return sorted(kept)


def _round(t: float) -> bool:
    return t in (0.1, 0.5, 1.0, 2.0, 10.0, 100.0)


def plain_ticks(scale: Scale, most: int = 4) -> list[float]:
    """Round values on a linear scale."""
    raw = (scale.high - scale.low) / most
    power = 10.0 ** math.floor(math.log10(raw)) if raw > 0 else 1.0
    step = next(power * m for m in (1, 2, 5, 10) if power * m >= raw)
    first = math.ceil(scale.low / step)
    return [i * step for i in range(first, first + most + 1) if scale.low <= i * step <= scale.high]


def decade_ticks(scale: Scale, most: int = 5) -> list[float]:
    """Powers of ten on a logarithmic scale, every n-th; round values between where it spans less than two."""
    first, last = math.ceil(math.log10(scale.low)), math.floor(math.log10(scale.high))
    if last - first < 2:
        fine = [m * 10.0**e for e in range(first - 1, last + 2) for m in (1, 2, 5)]
        return [t for t in fine if scale.low <= t <= scale.high]
    step = max(1, math.ceil((last - first + 1) / most))
    return [10.0**e for e in range(first, last + 1, step)]


def tag(name: str, content: Markup | str = "", **attributes: object) -> Markup:
    """One element. ``class_`` is class; underscores become dashes; floats are shortened."""
    text = "".join(f' {escape(_attribute(k))}="{escape(_number(v))}"' for k, v in attributes.items() if v is not None)
    return Markup(f"<{name}{text}>{escape(content)}</{name}>")


def _attribute(name: str) -> str:
    return name.rstrip("_").replace("_", "-") if name not in ("viewBox", "preserveAspectRatio") else name


def _number(value: object) -> object:
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else value


def percent(value: float) -> str:
    return f"{_number(float(value))}%"


def line(x1: float, y1: float, x2: float, y2: float, class_: str) -> Markup:
    """Ends in percent."""
    return tag("line", x1=percent(x1), y1=percent(y1), x2=percent(x2), y2=percent(y2), class_=class_)


def dot(x: float, y: float, r: float, class_: str, title: str = "") -> Markup:
    return tag("circle", tag("title", title) if title else "", cx=percent(x), cy=percent(y), r=r, class_=class_)


def band(x1: float, x2: float, class_: str, y: float = 0.0, height: float = 100.0) -> Markup:
    """A rectangle from ``x1`` to ``x2``."""
    place = {"x": percent(min(x1, x2)), "width": percent(abs(x2 - x1)), "y": percent(y), "height": percent(height)}
    return tag("rect", **place, class_=class_)


def text(
    x: float, y: float, content: str, class_: str = "", anchor: str = "middle", dx: float = 0, dy: float = 0
) -> Markup:
    return tag(
        "text", content, x=percent(x), y=percent(y), class_=class_, text_anchor=anchor, dx=dx or None, dy=dy or None
    )


def svg(parts: Iterable[Markup], height: float, label: str, class_: str = "") -> Markup:
    """A chart as wide as its place and ``height`` pixels high; ``label`` is read out."""
    body = Markup("").join([tag("title", label), *parts])
    return tag("svg", body, class_=f"chart {class_}".strip(), width="100%", height=height, role="img", aria_label=label)


def anchor(x: float) -> str:
    """How a label at ``x`` percent is set so that it stays inside."""
    return "start" if x < 8 else "end" if x > 92 else "middle"


def density(samples: Sequence[float], scale: Scale, bins: int = 120) -> list[float]:
    """Kernel density of ``samples`` at ``bins`` places along ``scale``, the highest 1 (Gaussian, Silverman, 1986)."""
    n = len(samples)
    ordered = sorted(samples)
    mean = sum(samples) / n
    spread = math.sqrt(sum((s - mean) ** 2 for s in samples) / n)
    middle = (ordered[(3 * n) // 4] - ordered[n // 4]) / 1.34
    width = 0.9 * (min(spread, middle) or spread or abs(mean) * 1e-3 or 1e-12) * n**-0.2
    width = max(width, (scale.high - scale.low) / bins)
    places = [scale.low + (i + 0.5) / bins * (scale.high - scale.low) for i in range(bins)]
    heights = [sum(math.exp(-0.5 * ((p - s) / width) ** 2) for s in samples if abs(p - s) < 4 * width) for p in places]
    top = max(heights) or 1.0
    return [h / top for h in heights]


def hill(heights: Sequence[float], class_: str) -> Markup:
    """A mirrored density, stretched over its place."""
    step = 1000 / len(heights)
    upper = [f"{(i + 0.5) * step:.1f},{50 - 46 * h:.1f}" for i, h in enumerate(heights)]
    lower = [f"{(i + 0.5) * step:.1f},{50 + 46 * h:.1f}" for i, h in reversed(list(enumerate(heights)))]
    shape = tag("polygon", points=" ".join((*upper, *lower)), class_=class_)
    return tag("svg", shape, viewBox="0 0 1000 100", preserveAspectRatio="none", width="100%", height="100%", x=0, y=0)
