"""``tilewright audit``."""

from __future__ import annotations

import json as jsonlib
from pathlib import Path
from typing import Annotated

import typer

from . import _options as o
from . import _start

Folder = Annotated[Path, typer.Argument(help="Folder of folders that hold a problem.py and kernels.", metavar="DIR")]
Jobs = Annotated[int, typer.Option("--jobs", "-j", help="Kernels checked at the same time.", min=1)]
ProblemGlob = Annotated[
    str | None, typer.Option("--problem-glob", help="Which files are problems, e.g. 'level1/*.py'.")
]
KernelGlob = Annotated[
    str | None, typer.Option("--kernel-glob", help="Which files are kernels; paired by folder or by stem.")
]
Fresh = Annotated[bool, typer.Option("--fresh", help="Begin again instead of going on with an unfinished audit.")]


def command(
    folder: Folder,
    jobs: Jobs = 2,
    strict: o.Strict = False,
    problem_glob: ProblemGlob = None,
    kernel_glob: KernelGlob = None,
    json: o.Json = None,
    junit: o.Junit = None,
    sarif: o.Sarif = None,
    fresh: Fresh = False,
    ledger: o.LedgerPath = None,
    sandbox: o.Sandbox = "best",
    seed: o.Seed = None,
    gate_seconds: o.Seconds = 20.0,
    timeout: o.Timeout = 60.0,
    device: o.Device = "cpu",
) -> None:
    """Check every (problem, kernel) pair below DIR, in parallel. An audit that was stopped goes on where it was.

    Exit code: 0 all accepted, 1 some rejected, 3 none rejected but some incomplete, 2 an error.
    """
    _start.ready()
    from .. import audit, report
    from ..report import audit_table
    from ..report import junit as junit_report
    from ..report import sarif as sarif_report

    report.must_be_writable(json, junit, sarif)
    pairs = audit.discover(folder, problem_glob, kernel_glob)
    with audit_table.live(len(pairs)) as notice:
        done = audit.audit(pairs, jobs=jobs, ledger=ledger, fresh=fresh, strict=strict, notice=notice, sandbox=sandbox,
                           seed=seed, gate_seconds=gate_seconds, timeout=timeout, **o.on(device))  # fmt: skip
    audit_table.show(done)
    if json is not None:
        report.write_text(json, jsonlib.dumps(done.data(), indent=1))
    if junit is not None:
        report.write_text(junit, junit_report.render([(r.pair.name, r.verdict or r.error) for r in done.rows]))
    if sarif is not None:
        report.write_text(sarif, sarif_report.render([r.verdict for r in done.rows if r.verdict]))
    raise typer.Exit(done.exit_code)
