"""Terminal output of a measurement: the answer first, the ratios with their intervals, then what was not counted."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ..measure.record import Figure, Measurement
from .html import forest, measurement, words
from .terminal import console

STYLE = {"faster": "bold green", "slower": "bold red", "no measurable gain": "bold", "too noisy": "bold yellow",
         "refused": "bold red"}  # fmt: skip
WIDTH = 31


def show(m: Measurement, out: Console | None = None) -> None:
    """Print one measurement."""
    out = out or console()
    out.print(Text.assemble((m.answer.upper(), STYLE[m.answer]), f"  {Path(m.kernel).name}  for {m.task}",
                            (f"  ({m.id})" if m.id else "", "dim")))  # fmt: skip
    out.print(Text(measurement.sentence(m)))
    if slow := measurement.losses(m):
        out.print(Text(slow, style="red"))
    if any(f.ratios for w in m.workloads for f in w.figures):
        out.print(_ratios(m))
    for r in measurement.refused(m):
        out.print(Text.assemble((f"{r.kind:<12}", "yellow"), f"{r.what}: {r.why}"))
    if m.transfer:
        t = m.transfer
        cause = f" ({t.cause})" if t.cause else ""
        out.print(Text(f"{'hidden':<12}{t.kept} of {t.hidden} hidden workloads keep the gain{cause}"))
    for note in m.notes:
        out.print(Text(f"note: {note}", style="yellow"))


def overview(many: Sequence[Measurement]) -> None:
    """One row a measurement."""
    t = _table(("kernel", {"overflow": "fold"}), ("task", {}), ("answer", {"no_wrap": True}),
               ("ratio", {"justify": "right"}), ("interval", {}), ("id", {"style": "dim", "no_wrap": True}))  # fmt: skip
    for m in many:
        ratio = words.times(m.ratio.median) if m.ratio else words.UNKNOWN
        t.add_row(Path(m.kernel).name, m.task, Text(m.answer, style=STYLE[m.answer]), ratio, words.span(m.ratio), m.id)
    console().print(t)


def _table(*columns: tuple[str, dict[str, object]]) -> Table:
    t = Table(box=None, pad_edge=False, header_style="bold")
    for name, options in columns:
        t.add_column(name, **options)  # type: ignore[arg-type]
    return t


def _ratios(m: Measurement) -> Table:
    """One row a workload, state and right baseline, with the interval drawn."""
    figures = [(w, f) for w in m.workloads for f in w.figures if f.ratios]
    low, high = _reach([f for _, f in figures])
    t = _table(("workload", {"overflow": "fold"}), ("state", {"style": "dim"}), ("baseline", {"no_wrap": True}),
               ("ratio", {"justify": "right", "no_wrap": True}), ("interval", {"no_wrap": True}),
               (f"{words.times(low):<{WIDTH // 2}}{words.times(high):>{WIDTH - WIDTH // 2}}", {"no_wrap": True}),
               ("answer", {"no_wrap": True}))  # fmt: skip
    for w, f in figures:
        for row in forest.figure_rows(f, words.dims(w.dims) or w.name):
            name = Text(
                row.label.removeprefix("vs ") + (" *" if row.honest else ""), style="bold" if row.honest else ""
            )
            t.add_row(row.group, f"{f.cache}, {f.launch}", name, row.value, row.range, _drawn(row, low, high),
                      Text(row.answer, style=STYLE[row.answer] if row.honest else ""))  # fmt: skip
    t.caption = "* the honest baseline: the fastest that is right"
    t.caption_justify = "left"
    return t


def _reach(figures: Sequence[Figure]) -> tuple[float, float]:
    ends = [e for f in figures for r in f.ratios for e in (r.interval.low, r.interval.high)]
    return min([*ends, 0.9]), max([*ends, 1.1])


def _drawn(row: forest.Row, low: float, high: float) -> Text:
    """``·`` is 1, ``━`` the interval, ``●`` the median."""
    from .html.draw import Scale

    scale = Scale(low, high, log=True)
    cells = [" "] * WIDTH
    at = [
        min(int(scale.at(v) / 100 * WIDTH), WIDTH - 1) for v in (row.ratio.low, row.ratio.median, row.ratio.high, 1.0)
    ]
    cells[at[3]] = "│"
    cells[at[0] : at[2] + 1] = ["━"] * (at[2] - at[0] + 1)
    cells[at[1]] = "●"
    return Text("".join(cells), style=STYLE[row.answer].removeprefix("bold ") if row.honest else "dim")
