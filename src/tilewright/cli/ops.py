"""``tilewright ops``."""

from __future__ import annotations

import json as jsonlib
from typing import Annotated

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
        raise typer.Exit(ops_table.check(name, json=json, ledger=ledger))
    found = ops_table.rows() if action == "list" else [ops_table.sheet(name)]
    if json is not None:
        report.write_text(json, jsonlib.dumps(found if action == "list" else found[0], indent=2))
    if str(json) != "-":
        (ops_table.show_list if action == "list" else ops_table.show)(found)
