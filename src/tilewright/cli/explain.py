"""``tilewright explain``."""

from __future__ import annotations

from typing import Annotated

import typer

from . import _options as o

Dims = Annotated[
    str, typer.Option("--dims", help="Sizes to explain, e.g. 'M=1024,N=4096' (default: the first workload's).")
]
Dtype = Annotated[str | None, typer.Option("--dtype", help="Dtype of the main inputs (default: the first workload's).")]


def command(
    problem: o.Problem,
    kernel: o.KernelFile,
    dims: Dims = "",
    dtype: Dtype = None,
    json: o.Json = None,
    contract: o.ContractFile = None,
    reference: o.Reference = None,
    sandbox: o.Sandbox = "best",
) -> None:
    """What does each launch of KERNEL do, line by line, and what stands in the way of speed? Needs no GPU.

    Example: tilewright explain examples/01_softmax/problem.py examples/01_softmax/right.py
    """
    from .. import report
    from ..explain import explain
    from ..report import explain_table

    found = explain(
        problem, kernel, dims=parse(dims), dtype=dtype, overrides=contract, reference=reference, sandbox=sandbox
    )
    if json is not None:
        report.write_text(json, found.model_dump_json(indent=2))
    if str(json) != "-":
        explain_table.show(found)


def parse(text: str) -> dict[str, int]:
    """``"M=8,N=4"`` as a dict. Raises UserError."""
    from ..errors import UserError

    out = {}
    for part in filter(None, (p.strip() for p in text.split(","))):
        name, equals, value = (p.strip() for p in part.partition("="))
        if not equals or not value.isdigit():
            raise UserError(f"--dims has '{part}', which is no size", remedy="write NAME=NUMBER, separated by commas")
        out[name] = int(value)
    return out
