"""Terminal output of ``compare``: gate beside gate, what got worse, the answer, and how to see it again."""

from __future__ import annotations

from rich.text import Text

from ..compare import Compared
from ..prove.verdict import Verdict
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
    shown = [r.findings[0] for r in c.new.gates if r.name in worse and r.findings]
    for f in shown:
        finding(f, out=out, of=c.new.kernel)
    style = {"no regression": "bold green", "regression": "bold red", "open": "bold yellow"}[c.answer]
    out.print(Text.assemble(
        (c.answer.upper(), style), f"  new: {_version(c.new)}, old: {_version(c.old)}, against {c.new.task}"))  # fmt: skip
    for i, f in enumerate(shown):
        how = "    (--script: without Tilewright)" if i == 0 else ""
        out.print(Text.assemble(("again     ", "bold"), f"{f.gate}: tilewright replay {f.id}{how}"))


def _version(v: Verdict) -> str:
    return f"{v.kernel} ({', '.join(p for p in (v.verdict, v.id) if p)})"
