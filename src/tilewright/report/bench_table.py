"""A measurement in the terminal: the answer first, then a row for each workload and baseline, then what stands behind it."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ..measure.record import CANDIDATE, TWIN, Arm, Ceilings, Figure, Interval, Measurement, Ratio, WorkloadResult
from ..prove.verdict import Verdict
from . import noise, terminal

STYLE = {"faster": "bold green", "slower": "bold red", "no measurable gain": "bold yellow", "too noisy": "bold magenta",
         "refused": "bold red"}  # fmt: skip
UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))
WIDE = 100
SIZES = ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"), (1, "B"))


def show(m: Measurement, *, quiet: bool = False) -> None:
    """Print a measurement."""
    out = terminal.console()
    head = headline(m)
    if quiet:
        out.print(head, soft_wrap=True)
        return
    for result in m.workloads:
        _workload(out, result)
    _baselines(out, m)
    _rest(out, m)
    out.print(head, soft_wrap=True)
    out.print(Text("because   ", style="bold"), Text(m.reason), sep="", soft_wrap=True)
    if m.void and m.id:
        said = f"as an attempt, which claims nothing: tilewright report {m.id}"
        out.print(Text("kept      ", style="bold"), Text(said), sep="", soft_wrap=True)


def headline(m: Measurement) -> Text:
    """The answer with its interval, in one line."""
    parts: list[str | tuple[str, str]] = [
        (m.answer.upper(), STYLE[m.answer]),
        f"  {m.kernel}  on {m.task}, {m.device_class}",
    ]
    if m.ratio is not None and m.answer not in ("refused", "too noisy"):
        parts.append(f"  {ratio(m.ratio)} the honest baseline's speed")
    return Text.assemble(*parts, (f"  ({m.id})" if m.id else "", "dim"))


def ratio(i: Interval) -> str:
    """``1.42× [1.38, 1.47]``."""
    return f"{i.median:.3g}× [{i.low:.3g}, {i.high:.3g}]"


def seconds(t: float | None) -> str:
    """A time in its unit, three digits."""
    if t is None:
        return "–"
    unit, name = next((u for u in UNITS if abs(t) >= u[0]), UNITS[-1])
    return f"{t / unit:.3g} {name}"


def size(n: int | None) -> str:
    """Bytes in their unit."""
    if n is None:
        return "–"
    unit, name = next((u for u in SIZES if n >= u[0]), SIZES[-1])
    return f"{n / unit:.3g} {name}"


def _workload(out: Console, r: WorkloadResult) -> None:
    hidden = " (hidden)" if r.kind == "hidden" else ""
    out.print(Text.assemble((f"{r.name}{hidden}: ", "bold"), (r.answer, STYLE[r.answer]), f"  {r.reason}"),
              soft_wrap=True)  # fmt: skip
    for f in r.figures:
        out.print(_figure(f, r, out.width))
        if f.arms:
            out.print(Text(f" noise {noise.of_figure(f)}", style="dim"), soft_wrap=True)


def _figure(f: Figure, r: WorkloadResult, width: int) -> Table:
    """A row for each arm. What no arm has is no column; in a narrow window the variation isn't shown either."""
    t = Table(box=None, pad_edge=True, header_style="bold", show_edge=False, padding=(0, 1, 0, 0))
    t.add_column(f"{f.cache} cache, {f.launch} launch", overflow="fold")
    cells = [_cells(f, r, arm) for arm in f.arms]
    shown = [n for n in cells[0] if any(row[n] for row in cells)] if cells else []
    for name in shown if width >= WIDE else [n for n in shown if n != "varies"]:
        last = name == "answer"
        need = max(len(str(row[name])) for row in cells)
        t.add_column(name, justify="left" if last else "right", no_wrap=not last, min_width=None if last else need)
    for arm, row in zip(f.arms, cells, strict=True):
        name = arm.name.rpartition(".")[2] if arm.name.count(".") > 1 else arm.name
        given = [row[c.header] for c in t.columns[1:]]  # type: ignore[index]
        t.add_row(Text(name + (" (honest)" if arm.name == f.honest else "")), *given)
    return t


def _cells(f: Figure, r: WorkloadResult, arm: Arm) -> dict[str, Text | str]:
    found = f.ratio(arm.name) if arm.name != CANDIDATE else None
    share = r.floor.seconds / arm.time.median if r.floor and r.floor.seconds and arm.time else None
    return {
        "time": seconds(arm.time.median if arm.time else None),
        "of floor": "" if share is None else f"{share:.0%}",
        "to launch": "" if arm.host is None else seconds(arm.host),
        "kernel is": _is(f, arm.name, found),
        "varies": f"{found.variation:.1%}" if found else "",
        "extra memory": size(arm.extra_bytes) if arm.extra_bytes else "",
        "answer": Text(found.answer, style=STYLE[found.answer]) if found else "",
    }


def _is(f: Figure, name: str, found: Ratio | None) -> Text:
    if found is not None:
        return Text(ratio(found.interval), style="dim" if found.answer == "too noisy" else "")
    return Text(f"{ratio(f.null)} (A/A)" if name == TWIN and f.null is not None else "")


def _baselines(out: Console, m: Measurement) -> None:
    for b in m.baselines:
        if b.status != "right":
            style = "red" if b.status == "wrong" else "dim"
            out.print(Text(f"baseline {b.name}: {b.status}: {b.reason}", style=style), soft_wrap=True)


def _rest(out: Console, m: Measurement) -> None:
    for line in (*m.refusals, *m.notes):
        out.print(Text(f"note: {line}", style="yellow"), soft_wrap=True)
    if m.transfer is not None:
        t = m.transfer
        kept = f"{t.kept} of {t.hidden} hidden workloads" + (f": {t.cause}" if t.cause else "")
        kept = kept if t.hidden else "unknown: every hidden workload was too noisy to tell"
        out.print(Text("transfer  ", style="bold"), Text(f"{kept}; spent {t.spent} time{'s' * (t.spent != 1)}"), sep="")
    slow = [f"{b.name} {seconds(b.compile_s)}" for b in m.baselines if b.compile_s and b.status == "right"]
    out.print(Text("ready in  ", style="bold"),
              Text(f"kernel {seconds(m.compile_s)}" + (f"; {', '.join(slow)}" if slow else "")), sep="")  # fmt: skip
    load = m.state.get("before", {}).get("load", [0])[0]
    out.print(Text("machine   ", style="bold"),
              Text(f"{m.ceilings.name if m.ceilings else m.device}, load {load:.1f}; protocol {m.protocol_version} "
                   f"({m.protocol[:12]}); {m.seconds:.0f} s"), sep="")  # fmt: skip
    out.print(Text("noise     ", style="bold"), Text(f"band {noise.of_measurement(m)}"), sep="", soft_wrap=True)


def not_accepted(v: Verdict, *, quiet: bool = False) -> None:
    """Say that a kernel is not timed, and why."""
    terminal.verdict(v, quiet=quiet)
    terminal.console().print(Text("not timed: only an accepted kernel is", style="bold"))


def machine(c: Ceilings) -> None:
    """Print the ceilings of a machine."""
    out = terminal.console()
    out.print(Text.assemble((c.name, "bold"), f"  ({c.device}, {c.threads} thread{'s' * (c.threads > 1)}, last cache "
                            f"{size(c.cache_bytes)})"))  # fmt: skip
    t = Table(box=None, pad_edge=False, header_style="bold", show_edge=False)
    for name in ("working set", "read GB/s", "copy GB/s"):
        t.add_column(name, justify="right", no_wrap=True)
    for n in sorted(set(c.read) | set(c.copy_)):
        t.add_row(size(n), *(f"{r[n] / 1e9:.1f}" if n in r else "–" for r in (c.read, c.copy_)))
    out.print(t)
    for dtype, rate in c.rates.items():
        out.print(f"{dtype:>10}  {rate / 1e9:.1f} Gop/s")
    if c.launch is not None:
        out.print(f"an empty call takes {seconds(c.launch)}")
    out.print(Text(c.method, style="dim"))


@contextmanager
def live() -> Iterator[Callable[[str, int, int], None]]:
    """Says what is being timed: one line that changes on a terminal, a line for each step elsewhere."""
    out = Console(stderr=True)
    if not out.is_terminal:
        yield _steps()
        return
    with out.status("reading the problem") as status:
        yield lambda what, done, most: status.update(f"{what}" + (f": {done} of at most {most}" if most > 1 else ""))


def _steps() -> Callable[[str, int, int], None]:
    """A line on stderr when a new step begins, with the seconds since the first; for logs."""
    began, last = time.monotonic(), ""

    def show(what: str, done: int, most: int) -> None:
        nonlocal last
        if what != last:
            last = what
            print(f"{time.monotonic() - began:7.1f} s  {what}", file=sys.stderr, flush=True)

    return show
