"""``tilewright ops``."""

from __future__ import annotations

import json as jsonlib
from typing import Annotated, Any

import typer

from . import _options as o

Action = Annotated[str, typer.Argument(help="list, show or check.", metavar="ACTION")]
Name = Annotated[str, typer.Argument(help="Name of an operator, for show and check.", metavar="[NAME]")]


def command(action: Action = "list", name: Name = "", json: o.Json = None, ledger: o.LedgerPath = None) -> None:
    """The operator library: what there is, what each operator promises, and whether its kernels are accepted.

    'list' names all operators. 'show NAME' prints the contract, what is kept in memory, and what was measured. 'check NAME'
    examines the operator's kernels, forward and backward, in strict mode, as 'tilewright check' would. Exit code of check: 0
    all accepted, 1 one rejected, 3 none rejected but one incomplete; else 0, or 2 for an error.

    Example: tilewright ops show softmax
    """
    from .. import report
    from ..errors import UserError
    from ..report import ops_table

    report.must_be_writable(json)
    if action not in ("list", "show", "check"):
        raise UserError(f"there is no action '{action}'", remedy="use list, show NAME or check NAME")
    if action != "list" and not name:
        raise UserError(f"'{action}' needs the name of an operator", remedy="tilewright ops list")
    if action == "check":
        raise typer.Exit(_check(ops_table.sheet(name)["kernels"], json, ledger))
    found = ops_table.rows() if action == "list" else [ops_table.sheet(name)]
    if json is not None:
        report.write_text(json, jsonlib.dumps(found if action == "list" else found[0], indent=2))
    if str(json) != "-":
        (ops_table.show_list if action == "list" else ops_table.show)(found)


def _check(pairs: list[dict[str, str]], json: Any, ledger: str | None) -> int:
    """Examine an operator's kernels in strict mode; the exit code."""
    from .. import report
    from ..api import examine_and_record

    silent, found = str(json) == "-", []
    for pair in pairs:
        verdict = examine_and_record(pair["task"], pair["kernel"], strict=True, ledger=ledger,
                                     progress=None if silent else report.terminal.live()).verdict  # fmt: skip
        found.append(verdict)
        if not silent:
            report.terminal.verdict(verdict)
    if json is not None:
        report.write_text(json, jsonlib.dumps([v.model_dump(mode="json") for v in found], indent=2))
    verdicts = {v.verdict for v in found}
    return 1 if "reject" in verdicts else 3 if "incomplete" in verdicts else 0
