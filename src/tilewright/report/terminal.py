"""The terminal: the verdict first, the gates as a table, the counterexample last."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.panel import Panel
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

from ..kernel import Kernel
from ..prove.finding import Finding, TensorRecord
from ..prove.verdict import GateReport, Verdict
from .fold import Columns, folded

STYLE = {"accept": "bold green", "reject": "bold red", "incomplete": "bold yellow"}
STATUS = {"pass": "green", "fail": "red", "inconclusive": "yellow", "not applicable": "dim"}
CLASS = {
    "wrong": "wrong, whatever the tolerance", "cheat": "cheats: does not do the work that it claims",
    "inaccurate": "inaccurate: beyond what rounding explains", "deviates": "computes something else (no witness)",
    "policy": "breaks a policy of the contract",
}  # fmt: skip


def console(stderr: bool = False) -> Console:
    """A console that uses the width there is, and at least 80 columns in a pipe."""
    wide = Console(stderr=stderr, soft_wrap=False)
    if not wide.is_terminal and "COLUMNS" not in os.environ:
        return Console(stderr=stderr, width=120)
    return wide


def verdict(v: Verdict, *, quiet: bool = False) -> None:
    """Print a verdict."""
    out = console()
    head = Text.assemble(
        (v.verdict.upper(), STYLE[v.verdict]), f"  {v.kernel}  against {v.task}", (f"  ({v.id})" if v.id else "", "dim")
    )
    if quiet:
        out.print(head, Text(f"  {v.reason}"), sep="", soft_wrap=True)
        return
    out.print(table(v, out))
    for note in v.notes:
        out.print(Text(f"note: {note}", style="yellow"))
    decisive = [f for g in v.gates if g.role != "advisory" for f in g.findings]
    for f in decisive[:3]:
        finding(f, out=out)
    advisory = [(g, f) for g in v.gates if g.role == "advisory" for f in g.findings]
    for g, f in advisory:
        out.print(Text(f"advisory, {g.name}: {f.summary} [{f.id}]", style="dim"), soft_wrap=True)
    out.print(head)
    if v.verdict == "accept":
        out.print(Text("holds on  ", style="bold"), Text(domain(v.domain)), sep="")
        for c in v.claims:
            out.print(Text(f"claim     {c.kind}: ", style="bold"), Text(f"{c.domain} ({c.strength})"), sep="")
    else:
        out.print(Text("because   ", style="bold"), Text(v.reason), sep="")
    if v.verdict == "reject" and decisive:
        out.print(
            Text("again     ", style="bold"),
            Text(f"tilewright replay {decisive[0].id}    (--script: without Tilewright)"),
            sep="",
        )


def domain(d: dict[str, Any]) -> str:
    """What an accept holds on, in one line."""
    dims = ", ".join(_range(n, r, d.get("tried", {}).get(n)) for n, r in d.get("dims", {}).items())
    parts = [", ".join(d.get("dtypes", [])), dims, f"{d.get('layouts')} inputs",
             "empty tensors" if d.get("empty") else "no empty tensors", f"special values: {d.get('special_values')}",
             "gradients" if d.get("gradients") else "no gradients", f"contract {d.get('contract')}",
             f"as on {d['target']}" if d.get("target") else "",
             *(f"provided that {p}" for p in d.get("preconditions", []))]  # fmt: skip
    return "; ".join(p for p in parts if p)


def _range(name: str, promised: list[int], tried: int | None) -> str:
    """``N 1..4096 (tried up to 1025)``: the contract's range, and how much of it was run."""
    words = f"{name} {promised[0]}..{promised[-1]}" if len(promised) == 2 else f"{name} in {promised}"
    return words if tried is None or tried >= max(promised, default=0) else f"{words} (tried up to {tried})"


def table(v: Verdict, out: Console) -> RenderableType:
    """One row a gate; gates that don't apply for one and the same reason share a row."""
    columns: Columns = {
        "gate": {},
        "role": {"style": "dim"},
        "status": {},
        "what it means": {},
        "s": {"justify": "right"},
    }
    idle = [g for g in v.gates if g.status == "not applicable"]
    alike = {g.reason: [x.name for x in idle if x.reason == g.reason] for g in idle}
    rows: list[tuple[str | Text, ...]] = []
    for g in v.gates:
        if g in idle and g.reason == FOREIGN:
            continue
        names = alike.get(g.reason, []) if g in idle else []
        status = Text(g.status, style=_style(g))
        if len(names) < 2:
            rows.append((g.name, g.role, status, _means(g), f"{g.seconds:.1f}"))
        elif g.name == names[0]:
            rows.append((f"{len(names)} gates", "", status, f"{g.reason}: {', '.join(names)}", ""))
    return folded(out, columns, rows, prose="what it means")


FOREIGN = "no CUDA C++"  # a gate of another language: nothing that a reader of this verdict misses


def _style(g: GateReport) -> str:
    return STATUS[g.status] if g.role != "advisory" or g.status != "fail" else "yellow"


def _means(g: GateReport) -> str:
    if g.status == "pass":
        return f"{g.meaning}{'; ' + g.reason if g.reason else ''}"
    return g.reason or g.meaning


def finding(f: Finding, *, out: Console | None = None, kernel: Kernel | None = None, full: bool = False,
            of: str = "") -> None:  # fmt: skip
    """Print one finding with its case; ``of``: the kernel's file, where it is not plain which one is meant."""
    out = out or console()
    body = Table.grid(padding=(0, 2))
    body.add_column(style="bold", no_wrap=True)
    body.add_column(overflow="fold")
    if of:
        body.add_row("kernel", of)
    body.add_row("class", CLASS[f.cls])
    if f.where:
        body.add_row("where", f.where)
    if f.expected or f.got:
        body.add_row("expected", f.expected)
        body.add_row("got", f.got)
    dims = ", ".join(f"{k}={v}" for k, v in f.case.dims.items())
    body.add_row(
        "smallest case", "; ".join(p for p in (dims, f.case.dtype, f.case.options.get("layout", "contiguous")) if p)
    )
    for name, x in list(f.case.inputs.items())[:8]:
        body.add_row(f"  {name}", _input(x))
    for name, x in f.case.cotangents.items():
        body.add_row(f"  gradient into {name}", _input(x))
    if not f.replays:
        body.add_row("note", "did not show again in a fresh process, so it decides nothing")
    parts: list[Any] = [body]
    if f.detail and (full or f.cls in ("wrong", "cheat")):
        parts.append(Text("\n".join(f.detail.strip().splitlines()[-(40 if full else 8) :]), style="dim"))
    if full and kernel is not None and (line := _line(f, kernel)):
        parts.append(
            Syntax(
                kernel.text,
                "python",
                line_numbers=True,
                line_range=(max(1, line - 4), line + 4),
                highlight_lines={line},
            )
        )
    title = f"{f.gate}: {f.summary}"
    if len(title) + 6 > out.width:  # a title that does not fit would be cut
        title, parts = f.gate, [Text(f.summary), *parts]
    out.print(Panel(Group(*parts), title=Text(title), title_align="left", border_style="red",
                    subtitle=f.id, subtitle_align="right"))  # fmt: skip


def _line(f: Finding, kernel: Kernel) -> int:
    tail = f.where.rpartition(":")[2]
    return int(tail) if tail.isdigit() and kernel.text else 0


def _input(x: Any) -> str:
    if not isinstance(x, TensorRecord):
        return str(x)
    layout = "" if x.offset == 0 and _contiguous(x) else f" strides {x.strides} offset {x.offset}"
    return f"{x.dtype} {x.shape}{layout}: {x.preview}"


def _contiguous(x: TensorRecord) -> bool:
    step = 1
    for n, s in zip(reversed(x.shape), reversed(x.strides), strict=True):
        if n > 1 and s != step:
            return False
        step *= max(n, 1)
    return True


@contextmanager
def live() -> Iterator[Callable[[str, int], None]]:
    """A line that says which gate is at work, on a terminal; silent elsewhere."""
    out = Console(stderr=True)
    if not out.is_terminal:
        yield lambda gate, cases: None
        return
    with out.status("reading the problem") as status:
        yield lambda gate, cases: status.update(f"{gate}: case {cases + 1}")
