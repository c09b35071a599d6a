"""Terminal output of a study."""

from __future__ import annotations

from rich.table import Table
from rich.text import Text

from ..search.study import Study
from .terminal import console


def show(study: Study, *, note: str = "") -> None:
    """A row a strategy, the best first."""
    out = console()
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("strategy", "mean regret", "interval", "at the end", "near", "trials to near", "against random"):
        table.add_column(name, justify="left" if name == "strategy" else "right")
    against = {v.strategy: v for v in study.versus}
    for c in study.curves:
        v = against.get(c.strategy)
        word = "" if v is None else ("better" if v.high < 0 else "worse") if v.clear else "no clear difference"
        table.add_row(c.strategy, f"{c.area:.3f}", f"{c.area_low:.3f} to {c.area_high:.3f}", f"{c.mean[-1]:.3f}",
                      f"{c.arrived:.0%}", "–" if c.trials_to_near is None else f"{c.trials_to_near:g}", word)  # fmt: skip
    out.print(table)
    games = f"{len(study.spaces)} recorded space(s), {study.seeds} seeds each, {study.budget} trials a game"
    out.print(Text(f"{games}; regret is the share of the best known gain still missing, intervals are at {study.level:.0%}",
                   style="dim"))  # fmt: skip
    if note:
        out.print(Text(note))
