"""Terminal output of ``explain``: the roofline first, then each launch, then what stands in the way."""

from __future__ import annotations

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ..explain.facts import Explained, Launch
from .terminal import console

WIDE = 16
LEGEND = (
    "times: how often the line loads or stores each element; per thread: bytes that a thread moves at once (16 is most); "
    "used: share of the fetched memory that is needed; masked: lanes that a mask switches off; ?: not known"
)
MOST_ROWS, MOST_LEFT = 24, 4


def show(x: Explained) -> None:
    """Print an explanation."""
    out = console()
    dims = ", ".join(f"{n}={v}" for n, v in x.dims.items())
    out.print(
        Text.assemble((x.kernel, "bold"), f"  against {x.task}  ({dims or 'the given shape'}, {x.dtype})"),
        soft_wrap=True,
    )
    top = Table.grid(padding=(0, 2))
    top.add_column(style="bold", no_wrap=True)
    top.add_column(overflow="fold")
    top.add_row("must move", f"{size(x.compulsory)} ({x.compulsory_by})")
    top.add_row("moves", f"{size(x.read)} loaded and {size(x.written)} stored by {_who(x)}, before caches")
    top.add_row("operations", _operations(x))
    top.add_row(
        "floor",
        f"{seconds(x.floor)} on an {x.card}, bound by {x.bound}; the cost of a launch is not counted "
        f"(ceilings measured {x.measured})",
    )
    if x.formula:
        at = f"\n(read off the kernel at {x.formula_read})" if x.formula_read else ""
        top.add_row("computes", Text(x.formula).append(at, "dim"))
    out.print(Padding(top, (0, 0, 0, 2)))
    if x.operations:
        _torch(out, x)
    for i, launch in enumerate(x.launches, 1):
        _launch(out, i, launch)
    if x.launches:
        out.print(Padding(Text(LEGEND, style="dim"), (0, 0, 0, 2)))
    every = [
        *((f"launch {i}", o) for i, launch in enumerate(x.launches, 1) for o in launch.obstacles),
        *(("overall", o) for o in x.obstacles),
    ]
    out.print(Text("\nwhat stands in the way", style="bold"))
    if not every:
        out.print("  nothing that can be seen without a GPU")
    rows = Table.grid(padding=(0, 2))
    rows.add_column(style="yellow", no_wrap=True)
    rows.add_column(overflow="fold")
    for who, what in every:
        rows.add_row(who, Text(what))
    out.print(Padding(rows, (0, 0, 0, 2)))
    for note in x.notes:
        out.print(Text(f"note: {note}", style="dim"), soft_wrap=True)
    out.print(Text("Facts of the code, not timings; bytes are what loads and stores name, before caches.", style="dim"))


def _operations(x: Explained) -> str:
    if not x.flops:
        return "not counted: the task states none, and the launches have no dots"
    return (
        f"{number(x.flops)} ({x.flops_by}), {x.intensity:.3g} for each byte that must move; "
        f"from {x.ridge:.0f} on tensor cores are the limit, below it memory"
    )


def _launch(out: Console, number_: int, x: Launch) -> None:
    grid = " x ".join(map(str, x.grid))
    head = Text.assemble((f"\nlaunch {number_}  {x.function}", "bold"), f"  grid {grid}")
    if x.registers:
        limit = f" (limited by {x.limited_by})" if x.occupancy < 1 else ""
        spills = f"{x.spills} bytes spilled" if x.spills else "no spills"
        out.print(head, soft_wrap=True)
        facts = f"{x.warps} warps, {x.registers} registers a thread, {spills}, {size(x.shared)} shared"
        head = Text(f"{facts}; occupancy {x.occupancy:.0%}{limit}; {_waves(x.waves)}")
        out.print(Padding(head, (0, 0, 0, 2)))
    else:
        out.print(head, soft_wrap=True)
    t = Table(box=None, pad_edge=False, header_style="dim")
    for name in ("line", "access", "bytes", "times", "per thread", "used", "masked"):
        right = name not in ("line", "access")
        t.add_column(name, justify="right" if right else "left", no_wrap=right, overflow="fold")
    for a in x.accesses:
        t.add_row(
            a.where,
            f"{a.kind} {a.argument} {a.dtype}",
            size(a.bytes),
            f"{a.repeats:.3g}x" if a.repeats else "",
            Text(f"{a.width} B" if a.width else "?", style="yellow" if a.width and a.width < WIDE else ""),
            Text(
                "?" if a.used is None else f"{a.used:.0%}",
                style="yellow" if a.used is not None and a.used < 0.6 else "",
            ),
            f"{a.masked:.0%}" if a.masked else "",
        )
    out.print(Padding(t, (0, 0, 0, 2)))
    if x.dot_flops:
        cores = f"on tensor cores ({', '.join(x.tensor_cores)})" if x.tensor_cores else "without tensor cores"
        out.print(Text(f"  dots: {number(x.dot_flops)} operations {cores}"))
    out.print(Padding(Text(f"rounding: {x.rounding}"), (0, 0, 0, 2)))


def _waves(waves: float) -> str:
    return f"the grid fills {waves:.2g} of the card" if waves < 1 else f"{waves:.3g} waves of the card"


def _who(x: Explained) -> str:
    times = sum(o.times for o in x.operations)
    parts = [_many(len(x.launches), "launch", "launches")] * bool(x.launches)
    parts += [_many(times, "torch operation", "torch operations")] * bool(times)
    return " and ".join(parts) or "nothing"


def _torch(out: Console, x: Explained) -> None:
    """Torch operations line by line, and what they leave in memory for each other."""
    out.print(Text("\ntorch operations", style="bold"))
    t = Table(box=None, pad_edge=False, header_style="dim")
    for name, right in (("line", False), ("operation", False), ("result", False), ("read", True), ("written", True),
                        ("operations", True)):  # fmt: skip
        t.add_column(name, justify="right" if right else "left", overflow="fold")
    for o in x.operations[:MOST_ROWS]:
        times = f" x{o.times}" if o.times > 1 else ""
        t.add_row(o.where, f"{o.name}{times}", f"{o.shape} {o.dtype}", size(o.read), size(o.written), number(o.flops))
    out.print(Padding(t, (0, 0, 0, 2)))
    if len(x.operations) > MOST_ROWS:
        out.print(Text(f"  and {len(x.operations) - MOST_ROWS} more, see --json", style="dim"))
    for i in x.intermediates[:MOST_LEFT]:
        out.print(Padding(Text(f"in memory between steps: {i.shape} {i.dtype} ({size(i.bytes)}), made by {i.made}, read by "
                               f"{', '.join(i.read[:3])}"), (0, 0, 0, 2)))  # fmt: skip
    if len(x.intermediates) > MOST_LEFT:
        out.print(Text(f"  and {_many(len(x.intermediates) - MOST_LEFT, 'smaller one', 'smaller ones')}", style="dim"))


def _many(n: int, one: str, several: str) -> str:
    return f"{n} {one if n == 1 else several}"


def size(n: int) -> str:
    """Bytes for people."""
    value = float(n)
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if value < 1024 or unit == "GiB":
            return f"{value:.4g} {unit}" if unit != "bytes" else f"{n} bytes"
        value /= 1024
    return ""


def number(n: float) -> str:
    """A count for people."""
    for unit in ("", "k", "M", "G"):
        if n < 1000:
            return f"{n:.3g}{unit}"
        n /= 1000
    return f"{n:.3g}T"


def seconds(s: float) -> str:
    """A time for people."""
    return f"{s * 1e6:.3g} us" if s < 1e-3 else f"{s * 1e3:.3g} ms"
