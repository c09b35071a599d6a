"""``tilewright replay``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from . import _options as o

Finding = Annotated[
    str, typer.Argument(help="Id of a finding (or its first digits), as 'check' prints it.", metavar="ID")
]
Script = Annotated[
    bool,
    typer.Option(
        "--script",
        help="Write a short file that shows the failure with torch and the kernel alone, without Tilewright.",
    ),
]
Output = Annotated[
    Path | None,
    typer.Option("--output", "-o", help="Where --script writes (default: replay_ID.py; '-': standard output)."),
]
KernelNow = Annotated[
    str | None, typer.Option("--kernel", help="Run the case on this kernel file instead (a repaired one).")
]


def command(
    id: Finding, script: Script = False, output: Output = None, kernel: KernelNow = None, ledger: o.LedgerPath = None,
    sandbox: o.Sandbox = "best", timeout: o.Timeout = 60.0,
) -> None:  # fmt: skip
    """Run exactly the case of a finding again, on the kernel's file as it is now.

    Exit code: 1 it still fails, 0 it no longer does, 2 error.
    """
    from rich.console import Console
    from rich.text import Text

    from ..api import open_ledger
    from ..kernel import read
    from ..prove import replay
    from ..prove.script import render

    book = open_ledger(ledger)
    record = book.finding(id)
    sheet = record.verdict.sheet
    if script:
        text = render(record.finding, record.verdict.kernel, sheet, book.get_blob)
        target = output or Path(f"replay_{record.id}.py")
        if str(target) == "-":
            print(text)
        else:
            target.write_text(text)
            Console().print(f"wrote {target}; run it with: python {target}")
        return
    path = record.verdict.kernel.path
    now = read(kernel) if kernel else read(f"{path}::{record.verdict.kernel.entry}" if path.endswith(".py") else path,
                                           record.verdict.kernel.language)  # fmt: skip
    result = replay.replay(record.finding, now, sheet, book.load_tensor, strict=record.verdict.verdict.mode == "strict",
                           sandbox=sandbox, timeout=timeout, device=record.verdict.verdict.device)  # fmt: skip
    console = Console()
    if result.failed:
        console.print(Text("still fails: ", style="bold red"), Text(result.summary), sep="")
        if now.sha256() != record.verdict.kernel.sha256():
            console.print("The kernel's file has changed since the finding; the case fails on it as it is now.")
        raise typer.Exit(1)
    if result.silent or result.skipped:
        from ..errors import UserError

        raise UserError(f"the case can't be judged now: {result.silent or result.skipped}")
    console.print(Text("no longer fails", style="bold green"), Text(f" ({record.finding.summary})"), sep="")
