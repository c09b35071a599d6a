"""``tilewright suite``."""

from __future__ import annotations

import json as jsonlib
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from . import _options as o


class Action(StrEnum):
    """What to do with a suite."""

    list = "list"
    run = "run"


What = Annotated[Action, typer.Argument(help="list: the problems of a suite; run: check and measure kernels for them.")]
SuiteFolder = Annotated[
    Path,
    typer.Argument(
        help="A KernelBench checkout, a flashinfer-bench data set, GPU MODE problems, or folders with a problem.py.",
        metavar="SUITE",
    ),
]
Kernels = Annotated[
    Path | None,
    typer.Option("--kernels", help="Folder of kernels, named after the problems (default: the suite's own)."),
]
Only = Annotated[str, typer.Option("--only", help="Problems whose name contains this.", metavar="PART")]
FactsFile = Annotated[
    Path | None,
    typer.Option("--facts", help="TOML file with weights and categories of problems.", metavar="FILE"),
]
Against = Annotated[
    str,
    typer.Option("--against", help="Speed is against this baseline: 'honest' (the fastest right one), 'eager' …"),
]
Kinds = Annotated[
    str | None,
    typer.Option("--baselines", help="Kinds of baselines to measure, with commas (default: all that are to be had)."),
]
Hidden = Annotated[
    int, typer.Option("--hidden", min=0, help="Also measure each kernel on N workloads drawn in secret.")
]
At = Annotated[list[float] | None, typer.Option("--at", help="Thresholds of fast_p (repeat it).", metavar="P")]
CheckOnly = Annotated[bool, typer.Option("--check-only", help="Check and don't measure.")]
Device = Annotated[str, typer.Option("--device", help="Where kernels are checked and measured: cpu, cuda.")]
Quick = Annotated[bool, typer.Option("--quick", help="Shorter measurements with wider intervals.")]
Fresh = Annotated[bool, typer.Option("--fresh", help="Begin again instead of going on with an unfinished run.")]
Html = Annotated[Path | None, typer.Option("--html", help="Write scores and results as one HTML file.", metavar="FILE")]
Jobs = Annotated[int, typer.Option("--jobs", "-j", help="Kernels checked at the same time.", min=1)]


def command(
    action: What,
    suite: SuiteFolder,
    kernels: Kernels = None,
    only: Only = "",
    facts: FactsFile = None,
    against: Against = "honest",
    baselines: Kinds = None,
    hidden: Hidden = 0,
    at: At = None,
    check_only: CheckOnly = False,
    device: Device = "cpu",
    quick: Quick = False,
    jobs: Jobs = 2,
    strict: o.Strict = False,
    json: o.Json = None,
    html: Html = None,
    fresh: Fresh = False,
    ledger: o.LedgerPath = None,
    sandbox: o.Sandbox = "best",
    gate_seconds: o.Seconds = 20.0,
    timeout: o.Timeout = 60.0,
) -> None:
    """Check and measure many kernels for the problems of a suite, and score them. A stopped run goes on where it was.

    Exit code: 0 all accepted, 1 some rejected, 3 none rejected but some incomplete, too noisy or refused, 2 an error.
    """
    from .. import report
    from .. import suite as suites
    from ..errors import UserError
    from ..report import html as page
    from ..report import suite_table
    from ..suite import measuring
    from ..suite.scores import THRESHOLDS

    report.must_be_writable(json, html)
    kinds = o.kinds(baselines)
    whole = suites.read_suite(suite)
    whole = whole.weighed(suites.read_facts(facts)) if facts else whole
    found = whole.only(only) if only else whole
    if action is Action.list:
        suite_table.listing(found)
        raise typer.Exit(0)
    folder = kernels or found.kernels
    if folder is None:
        raise UserError(f"'{suite}' holds no kernels of its own", remedy="name their folder with --kernels DIR")
    pairing = suites.pair(whole, folder)
    pairing = pairing.only(found) if only else pairing
    options = {"strict": strict, "sandbox": sandbox, "timeout": timeout, "gate_seconds": gate_seconds}
    measurer = measuring.Bench(device, ledger, against, quick, hidden, kinds, check_only, options)
    with suite_table.live(2 * len(pairing.entries)) as notice:
        done = suites.run_suite(found, pairing, measurer, jobs=jobs, ledger=ledger, fresh=fresh, notice=notice,
                                key=measurer.key, **measurer.checking, **options)  # fmt: skip
    thresholds = sorted(set(at)) if at else THRESHOLDS
    suite_table.show(done, thresholds)
    if json is not None:
        report.write_text(json, jsonlib.dumps(suites.data(done, thresholds), indent=1))
    if html is not None:
        report.write_text(html, page.render_suite(done, thresholds))
    raise typer.Exit(done.exit_code)
