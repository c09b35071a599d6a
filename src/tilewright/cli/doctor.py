"""``tilewright doctor``."""

from __future__ import annotations

import json as jsonlib
from typing import Annotated

import typer

from . import _options as o

Quick = Annotated[bool, typer.Option("--quick", help="Leave out the escape attempts, which take a few seconds.")]


def command(
    json: o.Json = None, ledger: o.LedgerPath = None, sandbox: o.Sandbox = "best", quick: Quick = False
) -> None:
    """What can this machine do? Versions, compiler, sandbox; each escape is tried in a sealed child.

    Exit code: 0 all that 'check' needs is here, 2 something is missing.
    """
    from .. import doctor, report

    report.must_be_writable(json)
    found = doctor.diagnose(policy=sandbox, ledger=ledger, escapes=not quick)
    if json is not None:
        report.write_text(json, jsonlib.dumps(found.as_json(), indent=2))
    if str(json) != "-":
        doctor.render(found, report.terminal.console())
    raise typer.Exit(0 if found.ok else 2)
