"""Terminal output of an audit: progress while it runs, then a row a kernel and the summary."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.text import Text

from ..audit import Audited, Row
from .fold import Columns, folded
from .terminal import STYLE, console

Notice = Callable[[Row, bool], None]


@contextmanager
def live(total: int) -> Iterator[Notice]:
    """A progress bar on a terminal, a line for each result elsewhere."""
    out = Console(stderr=True)
    lock = threading.Lock()
    if not out.is_terminal:
        count = [0]

        def line(row: Row, resumed: bool) -> None:
            with lock:
                count[0] += 1
                out.print(f"[{count[0]}/{total}] {row.word:<10} {row.pair.name}{' (already done)' if resumed else ''}",
                          markup=False, soft_wrap=True)  # fmt: skip

        yield line
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=out, transient=True) as bar:
        task = bar.add_task("audit", total=total)
        yield lambda row, resumed: bar.update(task, advance=1, description=row.pair.name[-40:])


def show(done: Audited) -> None:
    """Print all rows and the summary."""
    out = console()
    columns: Columns = {"kernel": {}, "verdict": {}, "class": {}, "because": {}, "s": {"justify": "right"}}
    rows = [(r.pair.name, Text(r.word, style=STYLE.get(r.word, "bold magenta")), r.cls, _why(r),
             f"{r.verdict.seconds:.1f}" if r.verdict else "") for r in done.rows]  # fmt: skip
    out.print(folded(out, columns, rows, prose="because"))
    s = done.summary()
    words = [f"{s[w]} {w}" for w in ("accept", "reject", "incomplete", "error") if s[w] or w in ("accept", "reject")]
    classes = [f"{n} {c}" for c, n in s["rejected"].items() if n]
    out.print(
        Text(f"{s['total']} kernels: ", style="bold"),
        Text(", ".join(words)),
        Text(f" ({', '.join(classes)})" if classes else ""),
        Text(f"; {done.resumed} already done" if done.resumed else "", style="dim"),
        sep="",
    )


def _why(r: Row) -> str:
    if r.verdict is not None:
        return "" if r.word == "accept" else r.verdict.reason
    return r.error.splitlines()[0] if r.error else ""
