"""``tilewright replay``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

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

    from .. import report
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
        report.write_text(target, text)
        if str(target) != "-":
            Console().print(f"wrote {target}; run it with: python {target}")
        return
    now = read(kernel) if kernel else _recorded(record)
    _problem_is_there(record)
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


def _recorded(record: Any) -> Any:
    """The kernel from the file that the finding was found in, as it is now. Raises UserError where that has gone."""
    from ..errors import UserError
    from ..kernel import read

    old = record.verdict.kernel
    if not Path(old.path).is_file():
        raise UserError(
            f"the kernel of this finding, '{old.path}', is not there any more",
            remedy=f"tilewright replay {record.id} --kernel FILE runs the case on a kernel file that you name; "
            f"tilewright replay {record.id} --script writes the case with a copy of the kernel as it was",
        )
    return read(f"{old.path}::{old.entry}" if old.path.endswith(".py") else old.path, old.language)


def _problem_is_there(record: Any) -> None:
    """Raises UserError where the problem's file has gone."""
    from ..errors import UserError

    path = record.verdict.sheet.path.partition("::")[0]
    if not Path(path).exists():
        raise UserError(
            f"the problem of this finding, '{path}', is not there any more",
            remedy=f"put it back, or use tilewright replay {record.id} --script, which writes the case with a copy of it",
        )
