"""``tilewright machine``."""

from __future__ import annotations

from typing import Annotated

import typer

from . import _options as o

Device = Annotated[str, typer.Option("--device", help="cpu or cuda.")]


def command(device: Device = "cpu", json: o.Json = None, ledger: o.LedgerPath = None) -> None:
    """What this machine can do at most: bandwidth by working set, arithmetic by dtype, the cost of a call.

    Measured now, printed, and kept in the ledger. Exit code: 0 measured, 2 error.
    """
    from .. import report
    from ..errors import UserError
    from ..measure import machine
    from ..report import bench_table

    if device.partition(":")[0] not in ("cpu", "cuda"):
        raise UserError(f"device is '{device}'", remedy="use cpu or cuda")
    report.must_be_writable(json)
    found = machine.measure(device, ledger=ledger)
    if json is not None:
        report.write_text(json, found.model_dump_json(indent=2))
    if str(json) != "-":
        bench_table.machine(found)
