"""One operator function as a picture: ratio to the fastest right baseline with its interval, and how much of the floor is
reached, the kernel beside that baseline. An SVG that stands alone."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup, escape

from .html import draw, words
from .ops_evidence import Evidence, Figure

WIDTH, ROW, TOP, BOTTOM = 980, 34, 46, 34
NAMES, RATIOS, SHARES = (12, 262), (282, 640), (742, 968)
COLOURS = {"faster": "#1a7f37", "slower": "#cf222e", "no measurable gain": "#57606a"}
VOID = "#bf8700"
STYLE = (
    "text{font:12px system-ui,sans-serif;fill:#24292f}.small{font-size:11px;fill:#57606a}.head{font-weight:600}"
    ".line{stroke:#d0d7de;stroke-width:1}.one{stroke:#24292f;stroke-width:1}.band{fill:#eaeef2}"
)


def picture(rows: Sequence[Evidence]) -> str:
    """All measurements of one function, one row each."""
    height = TOP + ROW * len(rows) + BOTTOM
    ratios = _scale(rows)
    shares = draw.Scale(0.0, max(1.0, *(s for e in rows for s in _shares(e).values()), 1.0))
    parts = [_frame(rows, ratios, shares, height)]
    for i, e in enumerate(rows):
        parts.append(_row(e, TOP + ROW * i + ROW / 2, ratios, shares))
    label = f"{rows[0].function}: ratio to the fastest right baseline, and share of the floor"
    return str(
        draw.tag("svg", Markup("").join([draw.tag("title", label), draw.tag("style", Markup(STYLE)), *parts]),
                 xmlns="http://www.w3.org/2000/svg", width=WIDTH, height=height, viewBox=f"0 0 {WIDTH} {height}",
                 role="img")
    ) + "\n"  # fmt: skip


def _scale(rows: Sequence[Evidence]) -> draw.Scale:
    ends = [0.9, 1.1]
    for f in (e.figures[0] for e in rows if e.figures):
        if r := f.ratio():
            ends += [r.interval.low, r.interval.high]
        ends += [1 - f.noise, 1 + f.noise]
    return draw.around(ends, log=True)


def _shares(e: Evidence) -> dict[str, float]:
    """Share of the floor that kernel and best baseline reach in the deciding figure."""
    f = e.figures[0] if e.figures else None
    if f is None or e.floor is None or not e.floor.seconds:
        return {}
    times = {n: f.time(n) for n in ("candidate", f.honest) if n}
    return {n: e.floor.seconds / t.median for n, t in times.items() if t is not None and t.median > 0}


def _across(track: tuple[int, int], scale: draw.Scale, value: float) -> float:
    return track[0] + (track[1] - track[0]) * scale.at(value) / 100


def _text(x: float, y: float, words_: object, **more: object) -> Markup:
    return draw.tag("text", str(words_), x=x, y=y, **more)


def _frame(rows: Sequence[Evidence], ratios: draw.Scale, shares: draw.Scale, height: int) -> Markup:
    """Background, heads and both axes."""
    bottom = height - BOTTOM
    parts = [draw.tag("rect", width=WIDTH, height=height, fill="#ffffff"),
             _text(NAMES[0], 20, rows[0].function, class_="head"),
             _text(RATIOS[0], 20, "fastest right baseline / kernel (right of 1: the kernel is faster)", class_="head"),
             _text(SHARES[0], 20, "share of the floor (grey: its)", class_="head")]  # fmt: skip
    for track, scale, ticks in ((RATIOS, ratios, draw.ratio_ticks(ratios)), (SHARES, shares, [0.0, 0.5, 0.9, 1.0])):
        for t in ticks:
            x = _across(track, scale, t)
            kind = "one" if t == 1.0 else "line"
            parts.append(draw.tag("line", x1=x, x2=x, y1=TOP - 8, y2=bottom, class_=kind))
            parts.append(_text(x, bottom + 16, f"{t:g}", class_="small", text_anchor="middle"))
    return Markup("").join(parts)


def _row(e: Evidence, y: float, ratios: draw.Scale, shares: draw.Scale) -> Markup:
    parts = [_text(NAMES[0], y - 2, e.direction), _text(NAMES[0], y + 12, shape(e), class_="small")]
    f = e.figures[0] if e.figures else None
    colour = COLOURS.get(f.answer if f else e.answer, VOID)
    if f is None or f.ratio() is None:
        parts.append(_text(RATIOS[0], y + 4, e.answer, fill=VOID))
        return Markup("").join(parts)
    parts += _ratio(f, y, ratios, colour)
    for name, share in _shares(e).items():
        own = name == "candidate"
        top, tall = (y - 9, 10) if own else (y + 2, 6)
        parts.append(draw.tag("rect", x=SHARES[0], y=top, height=tall, fill=colour if own else "#afb8c1",
                              width=_across(SHARES, shares, share) - SHARES[0]))  # fmt: skip
    return Markup("").join(parts)


def _ratio(f: Figure, y: float, ratios: draw.Scale, colour: str) -> list[Markup]:
    """The noise band, the interval, the median, and which baseline it is."""
    r = f.ratio()
    assert r is not None
    low, mid, high = (_across(RATIOS, ratios, v) for v in (r.interval.low, r.interval.median, r.interval.high))
    left, right = (_across(RATIOS, ratios, v) for v in (1 - f.noise, 1 + f.noise))
    answer = "" if f.answer in COLOURS else f", {f.answer}"
    return [
        draw.tag("rect", x=left, y=y - ROW / 2 + 2, width=right - left, height=ROW - 4, class_="band"),
        draw.tag("line", x1=_across(RATIOS, ratios, 1.0), x2=_across(RATIOS, ratios, 1.0), y1=y - ROW / 2,
                 y2=y + ROW / 2, class_="one"),
        draw.tag("line", x1=low, x2=high, y1=y, y2=y, stroke=colour, stroke_width=3),
        draw.tag("circle", cx=mid, cy=y, r=5, fill=colour),
        _text(RATIOS[1] + 8, y - 2, f"{words.digits(r.interval.median)}×", fill=colour),
        _text(RATIOS[1] + 8, y + 12, short(f.honest) + answer, class_="small"),
    ]  # fmt: skip


def shape(e: Evidence) -> str:
    """``M=8192, N=8192``."""
    return escape(", ".join(f"{n}={v}" for n, v in e.dims.items()))


def short(baseline: str) -> str:
    """A baseline's name as people say it: packages by their first word."""
    last = baseline.rpartition(".")[2]
    for word, name in (
        ("liger", "Liger"),
        ("fla", "FLA"),
        ("conch", "conch"),
        ("cut", "CCE"),
        ("torch", "PyTorch's own"),
    ):
        if last.startswith(f"{word}_") or baseline.startswith((f"{word}.", f"{word}_")):
            return name
    return baseline
