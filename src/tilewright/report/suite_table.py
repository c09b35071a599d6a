"""Terminal output of a suite: scores, categories, and beneath them every loss and every kernel that does not count."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from ..suite import Done, Suite
from ..suite.scores import THRESHOLDS, Result, Transfer, categories, fast_p, losses, roofline, transfer
from .html import words
from .html.suite import share
from .terminal import STYLE, console

MOST = 12
COLUMNS = (
    "problems",
    "right",
    "rejected",
    "open",
    "missing",
    "faster",
    "slower",
    "no gain",
    "geomean",
    "fast_1",
    "roofline",
)
Notice = Callable[[str, str, bool], None]


@contextmanager
def live(total: int) -> Iterator[Notice]:
    """A progress bar on a terminal, a line for each result elsewhere."""
    out = Console(stderr=True)
    lock = threading.Lock()
    if not out.is_terminal:

        def line(name: str, word: str, resumed: bool) -> None:
            with lock:
                out.print(f"{word:<18} {name}{' (already done)' if resumed else ''}", markup=False, soft_wrap=True)

        yield line
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=out, transient=True) as bar:
        task = bar.add_task("suite", total=total)
        yield lambda name, word, resumed: bar.update(task, advance=1, description=name[-40:])


def listing(suite: Suite) -> None:
    """The problems of a suite."""
    out = console()
    t = _table(("problem", {"overflow": "fold"}), ("category", {}), ("weight", {"justify": "right"}))
    for p in suite.problems:
        t.add_row(p.name, p.category, f"{p.weight:g}")
    out.print(t)
    out.print(f"{words.plural(len(suite.problems), 'problem')}, {suite.format}", markup=False)


def show(done: Done, thresholds: Sequence[float] = THRESHOLDS) -> None:
    """Everything, method by method."""
    out = console()
    for method in done.methods:
        _method(out, method, done.results(method), thresholds)
    for why, n in done.unmeasured().most_common():
        out.print(Text.assemble(("not measured  ", "yellow"), f"{words.plural(n, 'accepted kernel')}: {why}"))
    for path, why in list(done.pairing.strays.items())[:MOST]:
        out.print(Text.assemble(("left out      ", "yellow"), f"{path.name}: {why}"))
    if len(done.pairing.strays) > MOST:
        out.print(f"              and {len(done.pairing.strays) - MOST} more files", markup=False)


def _method(out: Console, method: str, rows: list[Result], thresholds: Sequence[float]) -> None:
    out.print(Text(method, style="bold underline"))
    out.print(_scores(rows, thresholds))
    out.print(_categories(rows))
    for r in losses(rows):
        slow = ", ".join(f"{t.workload} {words.times(t.speedup)}" for t in r.timings if t.high < 1) or words.times(
            r.speedup
        )
        out.print(Text.assemble(("slower        ", "red"), f"{r.problem}: {slow}"))
    out_of = [r for r in rows if not r.right]
    for r in out_of[:MOST]:
        word = r.verdict if r.verdict != "accept" else r.answer
        style = STYLE.get(word, "bold red").removeprefix("bold ")
        out.print(Text.assemble((f"{word:<14}", style), f"{r.problem}: {r.cls + ': ' if r.cls else ''}{r.reason}"))
    if len(out_of) > MOST:
        out.print(
            f"              and {len(out_of) - MOST} more that do not count (all of them with --json)", markup=False
        )


def _scores(rows: list[Result], thresholds: Sequence[float]) -> Table:
    t = _table(
        ("score", {"no_wrap": True}),
        ("value", {"justify": "right"}),
        ("surely", {"justify": "right"}),
        ("what it is", {}),
    )
    for p in thresholds:
        than = "the baseline" if p == 1 else f"{p:g} times the baseline"
        what = "right" if p == 0 else f"right and faster than {than}"
        surely = "" if p == 0 else share(fast_p(rows, p, surely=True))
        t.add_row(
            f"fast_{p:g}", share(fast_p(rows, p)), surely, f"share of {words.plural(len(rows), 'problem')}: {what}"
        )
    t.add_row("roofline", share(roofline(rows)), "", "weighted share of the floor's speed; what is not right counts 0")
    moved = transfer(rows)
    t.add_row("transfer", words.percent(moved.rate), "", transferred(moved))
    return t


def transferred(t: Transfer) -> str:
    """How wins fared on hidden workloads."""
    if not t.wins:
        return f"{words.plural(t.untried, 'win')}, none tried on hidden workloads"
    low, high = t.interval
    lost = "; lost: " + ", ".join(f"{n} {c}" for c, n in t.causes.items()) if t.causes else ""
    return f"{t.holds} of {t.wins} wins hold on hidden workloads (95% interval {low:.0%} to {high:.0%}){lost}"


def _categories(rows: list[Result]) -> Table:
    t = _table(("category", {"overflow": "fold"}), *((name, dict[str, object](justify="right")) for name in COLUMNS))
    for c in categories(rows):
        v, a = c.verdicts, c.answers
        counts = (c.total, v["accept"], v["reject"], v["incomplete"] + v["error"], v["missing"])
        answers = (a["faster"], a["slower"], a["no measurable gain"])
        t.add_row(c.name, *map(str, counts + answers), words.times(c.speedup), share(c.fast_1), share(c.roofline))
    return t


def _table(*columns: tuple[str, dict[str, object]]) -> Table:
    t = Table(box=None, pad_edge=False, header_style="bold")
    for name, options in columns:
        t.add_column(name, **options)  # type: ignore[arg-type]
    return t
