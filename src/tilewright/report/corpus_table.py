"""Terminal output of ``corpus``: the rates per gate and beside the usual check, then mutants, and what was lost last."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from ..corpus.grade import MODES, Grade, Graded
from .fold import Columns, folded
from .terminal import console

if TYPE_CHECKING:
    from ..corpus.scoring import Scored


@contextmanager
def live() -> Iterator[Callable[[str, str], None]]:
    """What is at work, on a terminal; every twentieth name elsewhere."""
    out = Console(stderr=True)
    lock, count = threading.Lock(), [0]
    if out.is_terminal:
        with out.status("reading labels") as status:
            yield lambda what, name: status.update(f"{what}: {name}")
        return

    def line(what: str, name: str) -> None:
        with lock:
            count[0] += 1
            if count[0] % 20 == 0:
                out.print(f"{count[0]} done ({what}: {name})", markup=False, soft_wrap=True)

    yield line


def show(done: Graded) -> None:
    """Print a graded corpus: rates, and what is no failure but worth a look. ``show_lost`` belongs at the very end."""
    out = console()
    if remarkable := [g for g in done.grades if g.kind in ("open", "other gate")]:
        out.print(_listed(out, remarkable))
    for mode in [m for m in MODES if any(g.mode == m for g in done.grades)]:
        c = done.counts(mode)
        t = Table(
            box=None,
            pad_edge=False,
            header_style="bold",
            title=f"{mode} mode",
            title_justify="left",
            title_style="bold",
        )
        for name in ("gate", "killed", "not the expected gate", "false alarms"):
            t.add_column(name, justify="left" if name == "gate" else "right")
        for gate, k in sorted(done.by_gate(mode).items(), key=lambda x: -sum(x[1].values())):
            t.add_row(gate, str(k["killed"] + k["other gate"]), str(k["other gate"]), str(k["false alarm"]))
        out.print(t)
        out.print(f"faults killed {c['killed'] + c['other gate']}, missed {c['missed']}, open {c['open']} "
                  f"(kill rate of those that need no IR and no GPU {done.kill_rate(mode):.1%}); right kernels accepted "
                  f"{c['right']}, false alarms {c['false alarm']}, unsettled {c['unsettled']}")  # fmt: skip
    for half, limits in done.tolerance().items():
        if limits["right_at_most"]:
            fault = (
                f", the least inaccurate fault {limits['fault_at_least']:.3g} times" if limits["fault_at_least"] else ""
            )
            out.print(
                f"error budget, {half} half: right kernels use at most {limits['right_at_most']:.2f} of it{fault}"
            )
    if done.usual:
        u = done.data()["usual"]
        out.print(
            f"the usual check passes {u['passed']} of {u['faults']} faults, and refuses {u['right_refused']} right kernels"
        )


def show_lost(done: Graded) -> None:
    """Print the kernels that fail the corpus. Last, so that the tail of a log shows them; in words, since
    a log has no colour."""
    out = console()
    if lost := [g for g in done.grades if g.lost]:
        out.print(_listed(out, lost))
        out.print(Text(f"LOST: {len(lost)} of {len(done.grades)} grades differ from their labels", style="bold red"))
    else:
        out.print(Text(f"all {len(done.grades)} grades are as labelled", style="bold green"))


def _listed(out: Console, grades: list[Grade]) -> RenderableType:
    """One row a grade."""
    rows = []
    for g in grades:
        gate = g.gate + (f" (expected {', '.join(g.label.gates)})" if g.kind == "other gate" else "")
        rows.append((g.pair.name, g.mode, Text(g.kind, style="bold red" if g.lost else "yellow"), gate, g.reason))
    columns: Columns = {"kernel": {}, "mode": {}, "kind": {}, "gate": {}, "because": {}}
    return folded(out, columns, rows, prose="because")


def show_mutants(scored: Scored) -> None:
    """Print the score per kind of mutation."""
    out = console()
    t = Table(box=None, pad_edge=False, header_style="bold", title="mutants", title_justify="left", title_style="bold")
    for name in ("kind", "made", "killed", "survived", "unsettled", "equivalent"):
        t.add_column(name, justify="left" if name == "kind" else "right")
    for kind, k in sorted(scored.by_kind().items()):
        t.add_row(kind, *map(str, (sum(k.values()), k["killed"], k["survived"], k["unsettled"], k["equivalent"])))
    out.print(t)
    for what in ("unsettled", "survived"):
        for m, why in scored.left(what):
            out.print(Text(f"{what}: {m.kind}  {m.key}", style="bold red" if what == "survived" else "yellow"),
                      Text(f"  ({why})" if what == "unsettled" else "", style="dim"), sep="", soft_wrap=True)  # fmt: skip
