"""``tilewright check``."""

from __future__ import annotations

import typer

from . import _options as o
from . import _start


def command(
    problem: o.Problem, kernel: o.KernelFile, strict: o.Strict = False, all_: o.All = False, json: o.Json = None,
    junit: o.Junit = None, sarif: o.Sarif = None, ledger: o.LedgerPath = None, contract: o.ContractFile = None,
    reference: o.Reference = None, sandbox: o.Sandbox = "best", seed: o.Seed = None, gate_seconds: o.Seconds = 20.0,
    timeout: o.Timeout = 60.0, quiet: o.Quiet = False, device: o.Device = "cpu",
) -> None:  # fmt: skip
    """May KERNEL replace its PyTorch reference PROBLEM? If not: why, and on which smallest input.

    Exit code: 0 accept, 1 reject, 3 incomplete, 2 error.

    Example: tilewright check examples/01_softmax/problem.py examples/01_softmax/wrong.py
    """
    _start.ready()
    from .. import report
    from ..api import examine_and_record

    report.must_be_writable(json, junit, sarif)
    result = examine_and_record(
        problem, kernel, strict=strict, every=all_, ledger=ledger, overrides=contract, reference=reference,
        sandbox=sandbox, seed=seed, gate_seconds=gate_seconds, timeout=timeout, device=device,
        progress=None if quiet or str(json) == "-" else report.terminal.live(),
    )  # fmt: skip
    report.write(result.verdict, json=json, junit=junit, sarif=sarif)
    if str(json) != "-":
        report.terminal.verdict(result.verdict, quiet=quiet)
    raise typer.Exit(result.verdict.exit_code)
