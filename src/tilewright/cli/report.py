"""``tilewright report``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from . import _options as o

Ids = Annotated[
    list[str],
    typer.Argument(
        help="Ids of measurements, verdicts and searches, or JSON files that --json wrote.", metavar="ID..."
    ),
]
Html = Annotated[
    Path | None,
    typer.Option("--html", help="Write one static HTML file: no script, nothing fetched.", metavar="FILE"),
]


def command(ids: Ids, html: Html = None, ledger: o.LedgerPath = None) -> None:
    """Show measurements, verdicts and searches side by side, in the terminal or as one HTML file.

    Exit code: 0 shown, 2 an error.
    """
    from .. import report
    from ..report import html as page
    from ..report import records

    report.must_be_writable(html)
    items = records.read_all(ids, ledger)
    if html is None:
        records.show(items)
        return
    report.write_text(html, page.render(items))
    if str(html) != "-":
        typer.echo(f"written: {html}", err=True)
