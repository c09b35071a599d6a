"""``tilewright search``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from . import _options as o

ProblemOrNot = Annotated[str | None, typer.Argument(help="Problem, as for check.", metavar="PROBLEM")]
KernelOrNot = Annotated[str | None, typer.Argument(help="Kernel to begin with.", metavar="KERNEL")]
BudgetOption = Annotated[
    list[str] | None,
    typer.Option("--budget", "-b", help="Limits: 60s, 5min, 40trials, 300gpus (GPU seconds), 200ktokens, 2.50usd; "
                 "several with commas or repeated.", metavar="LIMIT"),
]  # fmt: skip
StrategyOption = Annotated[
    str, typer.Option("--strategy", "-s", help="Who is gone on from: bandit, greedy, beam, islands, map-elites, mcts, "
                      "random, learned; NAME:key=value for its options.")
]  # fmt: skip
ProposerOption = Annotated[
    list[str] | None,
    typer.Option("--proposer", "-p", help="Who proposes: NAME or NAME:key=value,…; may be repeated (default: knobs for a "
                 "kernel that declares parameters, else rewrites).", metavar="NAME"),
]  # fmt: skip
Resume = Annotated[bool, typer.Option("--resume", help="Go on with the unfinished run of this problem and kernel.")]
RunId = Annotated[str | None, typer.Option("--run", help="Go on with this run (or its first digits).", metavar="RUN")]
ListRuns = Annotated[bool, typer.Option("--list", help="List the runs in the ledger and exit.")]
Finalists = Annotated[int, typer.Option("--finalists", help="How many are measured again on hidden workloads.", min=1)]
SeedNumber = Annotated[int, typer.Option("--seed", help="Seed of the search's own choices.")]
Html = Annotated[Path | None, typer.Option("--html", help="Write the report as one HTML file.", metavar="FILE")]
Output = Annotated[Path | None, typer.Option("--output", "-o", help="Write the fastest kernel here.", metavar="FILE")]
Bench = Annotated[
    bool, typer.Option("--bench", help="Then measure the winner with bench: against every baseline, recorded.")
]
Device = Annotated[str, typer.Option("--device", help="cpu or cuda.")]


def command(
    problem: ProblemOrNot = None, kernel: KernelOrNot = None, budget: BudgetOption = None,
    strategy: StrategyOption = "bandit", proposer: ProposerOption = None, resume: Resume = False, run: RunId = None,
    list_: ListRuns = False, finalists: Finalists = 3, seed: SeedNumber = 0, html: Html = None, output: Output = None,
    bench: Bench = False, device: Device = "cpu", strict: o.Strict = False, json: o.Json = None, ledger: o.LedgerPath = None,
    contract: o.ContractFile = None, reference: o.Reference = None, sandbox: o.Sandbox = "best",
    gate_seconds: o.Seconds = 10.0, quiet: o.Quiet = False,
) -> None:  # fmt: skip
    """Make KERNEL faster under a budget. Every trial is proved, then timed, and kept; what ends it is a measured gain on
    hidden workloads, or "no measurable gain".

    A run that was stopped goes on with --resume, from where it was. Exit code: 0 the run ended, 2 error.

    Example: tilewright search examples/07_search_matmul/problem.py examples/07_search_matmul/kernel.c --budget 60s
    """
    from .. import report
    from ..api import open_ledger
    from ..report import search_live, search_page
    from ..search import start
    from ..search.measured import Options

    book = open_ledger(ledger)
    if list_:
        return search_live.runs(book)
    report.must_be_writable(json, html, output)
    problem, kernel, record = _which(book, problem, kernel, resume, run, quiet)
    held = {} if record is None else record.options  # a run goes on under the rules that it began with
    options = Options(ledger=ledger, strict=held.get("strict", strict), overrides=held.get("contract", contract),
                      reference=held.get("reference", reference), sandbox=sandbox, gate_seconds=gate_seconds,
                      device=held.get("device", device))  # fmt: skip
    asked = start.Request(
        problem, kernel, tuple(budget or ()), strategy, tuple(proposer or ()), seed, finalists, options
    )
    try:
        with search_live.live(quiet or str(json) == "-") as notify:
            page, file = _run(book, asked, record, notify, output)
    except KeyboardInterrupt:
        return _stopped()
    conclusion = page.conclusion
    assert conclusion is not None
    if json is not None:
        report.write_text(json, conclusion.model_dump_json(indent=2))
    if html is not None:
        report.write_text(html, search_page.render(page))
    unwritten = "" if conclusion.node is not None or output is None else str(output)
    if str(json) != "-":
        search_live.show(page.tree, conclusion, run=page.run, file=file, report=str(html or ""), unwritten=unwritten)
    elif unwritten:
        typer.echo(search_live.not_written(unwritten), err=True)
    if bench and conclusion.node is not None:
        _bench(asked, file, quiet)


def _run(book, asked, record, notify, output):  # type: ignore[no-untyped-def]
    """Run it, or read it where it has ended: a page, and where the winner's source lies."""
    from .. import report
    from ..report.search_page import Page
    from ..search import start

    if record is not None and record.ended is not None:
        page = Page.of_record(book, record)
    else:
        page = Page.of_run(*start.search(asked, resume=record, notify=notify))
    ended = page.conclusion
    node = None if ended is None or ended.node is None else page.tree[ended.node]
    if node is None:
        return page, ""
    if output is not None:
        report.write_text(output, node.source)
        return page, str(output)
    return page, str(start.file_of(book, page.run, node, page.kernel))


def _bench(asked, file, quiet):  # type: ignore[no-untyped-def]
    """The winner against every baseline, recorded as a measurement."""
    from ..measure.bench import Options, bench
    from ..report import bench_table

    o = asked.options
    made = bench(
        asked.problem, file, ledger=o.ledger, progress=None if quiet else bench_table.live(),
        options=Options(strict=o.strict, overrides=o.overrides, reference=o.reference, sandbox=o.sandbox, device=o.device,
                        files=(asked.kernel,)))  # fmt: skip
    if made.measurement is not None:
        bench_table.show(made.measurement, quiet=quiet)


def _stopped() -> None:
    from rich.console import Console

    Console(stderr=True).print("stopped by Ctrl-C; the run goes on where it was with --resume", soft_wrap=True)
    raise typer.Exit(2)


def _which(book, problem, kernel, resume, run, quiet):  # type: ignore[no-untyped-def]
    """Problem, kernel and the record to go on with (None: a new run). Raises UserError."""
    from rich.console import Console

    from ..errors import UserError
    from ..search import start, store

    if run is not None:
        found = store.find(book, run)
        return found.problem, found.kernel_path, found
    if problem is None or kernel is None:
        raise UserError("a search needs a problem and a kernel",
                        remedy="tilewright search PROBLEM KERNEL --budget 60s; or --run RUN, --list")  # fmt: skip
    record = start.interrupted(book, problem, kernel)
    if resume and record is None:
        raise UserError("there is no unfinished run of this problem and kernel",
                        remedy="leave out --resume, or name a run: --run RUN (--list shows them)")  # fmt: skip
    if record is not None and not resume and not quiet:
        Console(stderr=True).print(
            f"run {record.id} of this kernel is unfinished; --resume goes on with it", soft_wrap=True
        )
    return problem, kernel, record if resume else None
