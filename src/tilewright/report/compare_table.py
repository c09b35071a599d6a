"""Terminal output of ``compare``: gate beside gate, and the answer."""

from __future__ import annotations

from rich.text import Text

from ..compare import Compared
from .fold import Columns, folded
from .terminal import STATUS, console, finding

COLOUR = {"worse": "bold red", "open": "yellow", "better": "green", "settled": "green"}


def show(c: Compared) -> None:
    """Print a comparison."""
    out = console()
    columns: Columns = {"gate": {}, "old": {}, "new": {}, "change": {}, "what": {}}
    rows = [(g.gate, Text(g.old, style=STATUS[g.old]), Text(g.new, style=STATUS[g.new]),
             Text(g.change, style=COLOUR.get(g.change, "dim")), g.note) for g in c.changes]  # fmt: skip
    out.print(folded(out, columns, rows, prose="what"))
    worse = {g.gate for g in c.changes if g.change == "worse"}
    for report in c.new.gates:
        if report.name in worse:
            for f in report.findings[:1]:
                finding(f, out=out)
    style = {"no regression": "bold green", "regression": "bold red", "open": "bold yellow"}[c.answer]
    out.print(
        Text(c.answer.upper(), style=style), Text(f"  old: {c.old.verdict}, new: {c.new.verdict}  ({c.new.id})"), sep=""
    )
