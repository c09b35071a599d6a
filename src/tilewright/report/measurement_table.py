"""Terminal output of several measurements: a row each, and the ratios of each as a forest plot above what ``bench`` says."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.table import Table
from rich.text import Text

from ..measure.record import Figure, Measurement
from . import bench_table
from .html import forest, measurement, words
from .terminal import console

WIDTH = 31


def show(m: Measurement) -> None:
    """Print one measurement: its ratios as a forest plot, then what ``bench`` says."""
    if any(w.figure and w.figure.ratios for w in m.workloads):
        console().print(_ratios(m))
    bench_table.show(m)
    if slow := measurement.losses(m):
        console().print(Text("loses     ", style="bold"), Text(slow, style="red"), sep="")


def overview(many: Sequence[Measurement]) -> None:
    """One row a measurement."""
    t = _table(("kernel", {"overflow": "fold"}), ("task", {}), ("answer", {"no_wrap": True}),
               ("ratio", {"justify": "right"}), ("interval", {}), ("id", {"style": "dim", "no_wrap": True}))  # fmt: skip
    for m in many:
        ratio = words.times(m.ratio.median) if m.ratio else words.UNKNOWN
        t.add_row(
            Path(m.kernel).name,
            m.task,
            Text(m.answer, style=bench_table.STYLE[m.answer]),
            ratio,
            words.span(m.ratio),
            m.id,
        )
    console().print(t)


def _table(*columns: tuple[str, dict[str, object]]) -> Table:
    t = Table(box=None, pad_edge=False, header_style="bold")
    for name, options in columns:
        t.add_column(name, **options)  # type: ignore[arg-type]
    return t


def _ratios(m: Measurement) -> Table:
    """One row a workload and right baseline in the deciding state, with the interval drawn."""
    figures = [(w, w.figure) for w in m.workloads if w.figure and w.figure.ratios]
    low, high = _reach([f for _, f in figures])
    scale = f"{words.times(low):<{WIDTH // 2}}{words.times(high):>{WIDTH - WIDTH // 2}}"
    t = _table(("workload", {"overflow": "fold"}), ("baseline", {"no_wrap": True}), ("ratio", {"justify": "right"}),
               ("interval", {"no_wrap": True}), (scale, {"no_wrap": True}), ("", {"no_wrap": True}))  # fmt: skip
    for w, f in figures:
        for row in forest.figure_rows(f, words.dims(w.dims) or w.name, void=m.answer == "refused"):
            name = Text(
                row.label.removeprefix("vs ") + (" *" if row.honest else ""), style="bold" if row.honest else ""
            )
            style = bench_table.STYLE["too noisy"].removeprefix("bold ")
            t.add_row(row.group, name, row.value, row.range, _drawn(row, low, high), Text(row.mark, style=style))
    t.caption = "* the honest baseline: the fastest that is right"
    t.caption_justify = "left"
    return t


def _reach(figures: Sequence[Figure]) -> tuple[float, float]:
    ends = [e for f in figures for r in f.ratios for e in (r.interval.low, r.interval.high)]
    return min([*ends, 0.9]), max([*ends, 1.1])


def _drawn(row: forest.Row, low: float, high: float) -> Text:
    """``│`` is 1, ``━`` the interval, ``●`` the median; ``╌`` and ``○`` where nothing may be claimed."""
    from .html.draw import Scale

    scale = Scale(low, high, log=True)
    cells = [" "] * WIDTH
    at = [
        min(int(scale.at(v) / 100 * WIDTH), WIDTH - 1) for v in (row.ratio.low, row.ratio.median, row.ratio.high, 1.0)
    ]
    cells[at[3]] = "│"
    bar, median = ("╌", "○") if row.mark else ("━", "●")
    cells[at[0] : at[2] + 1] = [bar] * (at[2] - at[0] + 1)
    cells[at[1]] = median
    return Text("".join(cells), style=bench_table.STYLE[row.answer].removeprefix("bold ") if row.honest else "dim")
