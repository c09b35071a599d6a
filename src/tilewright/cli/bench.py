"""``tilewright bench``."""

from __future__ import annotations

from typing import Annotated

import typer

from . import _options as o

BaselineFile = Annotated[
    list[str] | None,
    typer.Option("--baseline", "-b", help="Kernel file to compare with; also the kernel itself. May be repeated.",
                 metavar="FILE"),
]  # fmt: skip
Kinds = Annotated[
    str | None,
    typer.Option("--baselines", help="Kinds of baselines, with commas: eager, compile, max-autotune, graph, vendor, "
                 "peers (default: all that are to be had).", metavar="KINDS"),
]  # fmt: skip
Hidden = Annotated[int, typer.Option("--hidden", help="Also measure on N workloads drawn in secret.", metavar="N",
                                       min=0)]  # fmt: skip
Quick = Annotated[bool, typer.Option("--quick", help="A shorter run with wider intervals, under a hash of its own.")]
Cold = Annotated[bool, typer.Option("--cold", help="Also with emptied caches, as a figure of its own.")]
Device = Annotated[str, typer.Option("--device", help="cpu or cuda.")]
Fresh = Annotated[bool, typer.Option("--fresh", help="Begin again instead of going on with an interrupted run.")]


def command(
    problem: o.Problem, kernel: o.KernelFile, baseline: BaselineFile = None, baselines: Kinds = None,
    device: Device = "cpu", quick: Quick = False, cold: Cold = False, hidden: Hidden = 0, fresh: Fresh = False,
    strict: o.Strict = False, json: o.Json = None, ledger: o.LedgerPath = None, contract: o.ContractFile = None,
    reference: o.Reference = None, sandbox: o.Sandbox = "best", gate_seconds: o.Seconds = 20.0,
    timeout: o.Timeout = 60.0, quiet: o.Quiet = False,
) -> None:  # fmt: skip
    """Is an accepted KERNEL faster than the best that is right? By how much, and how sure is that?

    A kernel that was not accepted yet is checked first. Exit code: 0 measured, 1 kernel not accepted, 3 too noisy or
    refused, 2 error.

    Example: tilewright bench examples/05_native_fused/problem.py examples/05_native_fused/kernel.c --quick
    """
    from .. import report
    from ..measure import protocol as protocols
    from ..measure.bench import Options, bench
    from ..report import bench_table

    kinds = o.kinds(baselines)
    silent = quiet or str(json) == "-"
    report.must_be_writable(json)
    result = bench(
        problem, kernel, ledger=ledger, protocol=protocols.quick() if quick else protocols.PROTOCOL,
        options=Options(strict=strict, overrides=contract, reference=reference, sandbox=sandbox, device=device,
                        kinds=kinds, files=tuple(baseline or ()), hidden=hidden, cold=cold, fresh=fresh,
                        timeout=timeout, gate_seconds=gate_seconds),
        progress=None if silent else bench_table.live(),
        check_progress=None if silent else report.terminal.live(),
    )  # fmt: skip
    if result.measurement is None:
        report.write(result.verdict, json=json)
        if str(json) != "-":
            bench_table.not_accepted(result.verdict, quiet=quiet)
        raise typer.Exit(result.exit_code)
    if json is not None:
        report.write_text(json, result.measurement.model_dump_json(indent=2))
    if str(json) != "-":
        bench_table.show(result.measurement, quiet=quiet)
    raise typer.Exit(result.exit_code)
