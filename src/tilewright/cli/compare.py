"""``tilewright compare``."""

from __future__ import annotations

from typing import Annotated

import typer

from . import _options as o

Old = Annotated[str, typer.Argument(help="The version that is in use.", metavar="OLD")]
New = Annotated[str, typer.Argument(help="The version that is to replace it.", metavar="NEW")]
ProblemOption = Annotated[str, typer.Option("--problem", "-p", help="The problem that both solve.", metavar="PROBLEM")]


def command(
    old: Old,
    new: New,
    problem: ProblemOption,
    strict: o.Strict = False,
    json: o.Json = None,
    ledger: o.LedgerPath = None,
    contract: o.ContractFile = None,
    reference: o.Reference = None,
    sandbox: o.Sandbox = "best",
    seed: o.Seed = None,
    gate_seconds: o.Seconds = 20.0,
    timeout: o.Timeout = 60.0,
) -> None:
    """Is NEW at least as right as OLD, on the same cases? The regression check of a maintainer.

    Exit code: 0 no gate got worse, 1 NEW fails where OLD did not, 3 NEW leaves open what OLD settled, 2 error.
    """
    from .. import report
    from ..compare import compare
    from ..report import compare_table

    report.must_be_writable(json)
    with report.terminal.live() as show:
        result = compare(
            problem,
            old,
            new,
            strict=strict,
            ledger=ledger,
            overrides=contract,
            reference=reference,
            sandbox=sandbox,
            seed=seed,
            gate_seconds=gate_seconds,
            timeout=timeout,
            progress=show,
        )
    if json is not None:
        report.write_text(json, result.model_dump_json(indent=2))
    if str(json) != "-":
        compare_table.show(result)
    raise typer.Exit(result.exit_code)
