"""Terminal output of ``corpus``: what went wrong first, then the rates per gate and beside the usual check."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ..corpus.grade import MODES, Graded
from .terminal import console

if TYPE_CHECKING:
    from ..corpus.mutants import Scored


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
    """Print a graded corpus."""
    out = console()
    lost = [g for g in done.grades if g.lost or g.kind in ("open", "other gate")]
    if lost:
        t = Table(box=None, pad_edge=False, header_style="bold")
        for name in ("kernel", "mode", "kind", "gate"):
            t.add_column(name, overflow="fold")
        t.add_column("because", ratio=1)
        for g in lost:
            t.add_row(
                g.pair.name,
                g.mode,
                Text(g.kind, style="bold red" if g.lost else "yellow"),
                g.gate + (f" (expected {', '.join(g.label.gates)})" if g.kind == "other gate" else ""),
                g.reason,
            )
        out.print(t)
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
            fault = f", the least inaccurate fault {limits['fault_at_least']:.3g} times" if limits["fault_at_least"] else ""
            out.print(f"error budget, {half} half: right kernels use at most {limits['right_at_most']:.2f} of it{fault}")
    if done.usual:
        u = done.data()["usual"]
        out.print(
            f"the usual check passes {u['passed']} of {u['faults']} faults, and refuses {u['right_refused']} right kernels"
        )


def show_mutants(scored: Scored) -> None:
    """Print the score per kind of mutation."""
    out = console()
    t = Table(box=None, pad_edge=False, header_style="bold", title="mutants", title_justify="left", title_style="bold")
    for name in ("kind", "made", "killed", "survived", "equivalent"):
        t.add_column(name, justify="left" if name == "kind" else "right")
    for kind, k in sorted(scored.by_kind().items()):
        t.add_row(kind, str(sum(k.values())), str(k["killed"]), str(k["survived"]), str(k["equivalent"]))
    out.print(t)
    for m in scored.survivors():
        out.print(Text(f"survived: {m.name}  {m.change}", style="yellow"), soft_wrap=True)
