"""Terminal output of a search: the best so far, what is left of the budget and the failures by kind while it runs, a line
for each trial; then the conclusion."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from ..ledger import Ledger
from ..search import store
from ..search.finalists import Conclusion
from ..search.run import Run
from ..search.tree import Node, Tree
from . import search_changes
from .terminal import console

Notify = Callable[[Run, str], None]
DOING = {"asked": "waiting for a proposal", "proposed": "checking", "checked": "timing", "timed": "recording",
         "told": "choosing", "declined": "choosing", "finals": "measuring the finalists", "final": "measuring the finalists",
         "ended": "done"}  # fmt: skip


@contextmanager
def live(quiet: bool = False) -> Iterator[Notify]:
    """A live view on a terminal, a line for each trial elsewhere, nothing if ``quiet``."""
    out = Console(stderr=True)
    if quiet:
        yield lambda run, state: None
    elif not out.is_terminal:
        yield lambda run, state: _line(out, run, state)
    else:
        with Live(console=out, transient=True, refresh_per_second=4) as view:

            def update(run: Run, state: str) -> None:
                if state == "told":
                    view.console.print(trial(run.tree[max(run.tree.nodes)], run), soft_wrap=True)
                view.update(_view(run, state))

            yield update


def _line(out: Console, run: Run, state: str) -> None:
    if state == "told":
        out.print(trial(run.tree[max(run.tree.nodes)], run), soft_wrap=True)
    elif state == "finals":
        out.print("finalists are measured again, on hidden workloads", soft_wrap=True)


def trial(node: Node, run: Run) -> Text:
    """``#12 of #3  1.43x (1.40 to 1.47)  knobs: TILE=32``."""
    parent = "" if node.parent is None else f" of #{node.parent}"
    text = Text(f"#{node.number}{parent}".ljust(12), style="dim")
    text.append(_worth(node, run))
    p = node.proposal
    text.append(f"  {p.proposer}: {p.title or p.skill or ''}" if node.number else "  the start", style="dim")
    return text


def _worth(node: Node, run: Run) -> Text:
    t, f = node.timing, node.failure
    if t is not None:
        best = run.tree.best()
        style = "bold green" if best is not None and best.number == node.number else ""
        slow = f" {f.kind}" if f else ""
        return Text(f"{t.ratio:.3f}x ({t.low:.3f} to {t.high:.3f}){slow}".ljust(30), style=style)
    return Text(f"{f.kind}: {f.message.splitlines()[0][:90]}" if f else "not timed", style="yellow")


def _view(run: Run, state: str) -> Group:
    best = run.tree.best()
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_row(
        "best so far", f"#{best.number}  {best.timing.ratio:.3f}x" if best and best.timing else "nothing right yet"
    )
    table.add_row("left", left(run))
    table.add_row("failures", ", ".join(f"{n} {k}" for k, n in counts(run.tree).most_common()) or "none")
    table.add_row("now", DOING.get(state, state))
    return Group(Text(""), table)


def left(run: Run) -> str:
    """What is left of each limit, in words."""
    words = {"trials": "{:.0f} trials", "seconds": "{:.0f} s", "gpu_seconds": "{:.0f} GPU s", "tokens": "{:.0f} tokens",
             "money": "{:.2f} money"}  # fmt: skip
    given = run.left().model_dump()
    return ", ".join(words[n].format(max(0.0, x)) for n, x in given.items() if x is not None)


def counts(tree: Tree) -> Counter[str]:
    """Failures by kind."""
    return Counter(n.failure.kind for n in tree if n.failure is not None)


def show(tree: Tree, conclusion: Conclusion, *, run: str = "", file: str = "", report: str = "",
         unwritten: str = "") -> None:  # fmt: skip
    """The conclusion, why, what the winner changed, what it cost, and where things lie. ``unwritten``: a file that was asked
    for and not written, since nothing was proved faster."""
    out = console()
    style = "bold green" if conclusion.answer == "faster" else "bold"
    made = "" if conclusion.kind == "measured" else f"  [{conclusion.kind} times]"
    out.print(Text(conclusion.words.upper() if conclusion.answer != "faster" else conclusion.words, style=style),
              Text(made), sep="", soft_wrap=True)  # fmt: skip
    rows = [
        ("because", conclusion.reason),
        *changed(tree, conclusion),
        ("tried", tried(tree, conclusion)),
        ("ended by", conclusion.stopped),
    ]
    if conclusion.finalists:
        rows.append(("test", f"{conclusion.method}, level {conclusion.level:.0%}, margin {conclusion.margin:.0%}"))
    rows += [("cost", cost(conclusion)), ("kernel", file or not_written(unwritten)), ("report", report), ("run", run)]
    table = Table(box=None, show_header=False, pad_edge=False)
    for name, value in rows:
        if value:
            table.add_row(Text(name, style="dim"), Text(value, overflow="fold"))
    out.print(table)


def changed(tree: Tree, conclusion: Conclusion) -> list[tuple[str, str]]:
    """What the winner changed, and the trial that brought each step."""
    steps = search_changes.changes(tree, conclusion.node)
    if not steps:
        return []
    rows = [("winner", f"#{conclusion.node}: {search_changes.summary(tree, conclusion.node)}")]
    if len(steps) > 1:
        told = [f"#{c.number} {c.words}" + (f" ({c.gain:.3g}x)" if c.gain else "") for c in steps]
        rows += [("by way of" if i == 0 else "then", t) for i, t in enumerate(told)]
    return rows


def not_written(file: str) -> str:
    """Said in place of a file's name where there is nothing to write to it; empty if none was asked for."""
    return f"{file} was not written: nothing was proved faster than the kernel that you gave" if file else ""


def recorded(tree: Tree, conclusion: Conclusion | None, run: str) -> None:
    """A run as the ledger has it, ended or not."""
    if conclusion is not None:
        return show(tree, conclusion, run=run)
    out = console()
    best = tree.best() if tree.nodes else None
    worth = f"; the best so far is #{best.number}, {best.timing.ratio:.3f}x" if best and best.timing else ""
    out.print(Text("UNFINISHED", style="bold yellow"), Text(f"  {max(len(tree) - 1, 0)} trials{worth}"), sep="")
    out.print(Text("go on     ", style="bold"), Text(f"tilewright search --run {run}"), sep="", soft_wrap=True)


def tried(tree: Tree, conclusion: Conclusion) -> str:
    """``31 trials, 2 finalists; 3 wrong, 1 compile, 9 slower``."""
    bad = ", ".join(f"{n} {k}" for k, n in counts(tree).most_common())
    return f"{conclusion.tried} trials, {len(conclusion.finalists)} finalists" + (f"; {bad}" if bad else "")


def cost(conclusion: Conclusion) -> str:
    c = conclusion.cost
    parts = [f"{c.seconds:.0f} s"]
    parts += [f"{c.gpu_seconds:.0f} GPU s"] if c.gpu_seconds else []
    parts += [f"{c.tokens} tokens"] if c.tokens else []
    parts += [f"{c.money:.2f} money"] if c.money else []
    return ", ".join(parts)


def runs(book: Ledger) -> None:
    """All runs in a ledger, newest first."""
    out = console()
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("run", "kernel", "strategy", "proposers", "begun", "ended"):
        table.add_column(name, overflow="fold")
    for r in store.runs(book):
        ended = Conclusion(**r.ended).words if r.ended else "unfinished"
        who = ", ".join(r.options.get("proposers", ()))
        table.add_row(r.id, Path(r.kernel_path).name, r.options.get("strategy", ""), who, r.created[:19], ended)
    out.print(table if table.row_count else Text(f"the ledger {book.name} has no runs yet"))
