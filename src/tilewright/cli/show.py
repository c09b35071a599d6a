"""``tilewright show``."""

from __future__ import annotations

import json as jsonlib
from typing import Annotated, Any

import typer

from . import _options as o


def command(
    id: Annotated[
        str | None,
        typer.Argument(help="Id of a verdict, finding, audit … (default: the newest verdict).", metavar="[ID]"),
    ] = None,
    ledger: o.LedgerPath = None,
    json: Annotated[bool, typer.Option("--json", help="Print the record as JSON.")] = False,
) -> None:
    """Show what the ledger holds under an id: a verdict, one finding with its case, a measurement or an
    attempt at one, a search."""
    from rich.console import Console

    from .. import report
    from ..api import open_ledger
    from ..errors import UserError
    from ..report import records

    book = open_ledger(ledger)
    record: Any
    if id is None:
        latest = book.latest()
        if latest is None:
            raise UserError(f"the ledger {book.name} is empty", remedy="tilewright check PROBLEM KERNEL")
        kind, record = "verdict", latest
    else:
        found = book.find(id)
        kind, record = found.kind, found.record
        if kind in ("measurement", "attempt") or (kind == "search" and not json):
            record = records.from_ledger(book, found.id)
    if json:
        body = record.verdict if kind == "verdict" else record.finding if kind == "finding" else record
        print(body if isinstance(body, str) else body.model_dump_json(indent=2) if hasattr(body, "model_dump_json")
              else jsonlib.dumps(body, indent=2, default=str))  # fmt: skip
    elif kind == "verdict":
        report.terminal.verdict(record.verdict)
        Console().print(f"recorded {record.created}", style="dim")
    elif kind == "finding":
        report.terminal.finding(record.finding, kernel=record.verdict.kernel, full=True)
    elif kind in ("measurement", "attempt", "search"):
        records.show([record])
    else:
        Console().print({"kind": kind, **record})
