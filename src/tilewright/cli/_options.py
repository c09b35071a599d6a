"""Options that several commands share."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated

import typer


def _seconds(value: float) -> float:
    if not (math.isfinite(value) and value > 0):
        raise typer.BadParameter(f"{value:g} is not a number of seconds above 0")
    return value


Problem = Annotated[
    str,
    typer.Argument(
        help="Problem: a KernelBench file, a Tilewright task file, FILE::FUNCTION, a GPU "
        "MODE folder, or a flashinfer-bench definition.",
        metavar="PROBLEM",
    ),
]
KernelFile = Annotated[str, typer.Argument(help="Kernel: a .py, .c or .cu file, or FILE::ENTRY.", metavar="KERNEL")]
Strict = Annotated[
    bool,
    typer.Option(
        "--strict",
        help="Promise everything: what the reference does with NaN, strides and empty tensors, the kernel must do.",
    ),
]
All = Annotated[bool, typer.Option("--all", help="Run every gate, also after a certain rejection.")]
Json = Annotated[
    Path | None,
    typer.Option("--json", help="Write the result as JSON to this file ('-': standard output).", metavar="FILE"),
]
Junit = Annotated[Path | None, typer.Option("--junit", help="Write a JUnit XML report.", metavar="FILE")]
Sarif = Annotated[
    Path | None, typer.Option("--sarif", help="Write findings as SARIF 2.1.0 (code scanning).", metavar="FILE")
]
LedgerPath = Annotated[
    str | None,
    typer.Option(
        "--ledger", help="Ledger file or database URL (default: TILEWRIGHT_LEDGER, else the user's data folder)."
    ),
]
ContractFile = Annotated[
    str | None,
    typer.Option("--contract", help="TOML or Python file that overrides the inferred contract.", metavar="FILE"),
]
Reference = Annotated[
    str | None, typer.Option("--reference", help="Name of the reference function in PROBLEM.", metavar="NAME")
]
Sandbox = Annotated[
    str,
    typer.Option(
        "--sandbox",
        help="require: refuse to run without full isolation; best: what this machine allows; none: trust the code.",
    ),
]
Seed = Annotated[int | None, typer.Option("--seed", help="Fix the secret seed (for reproducing a run).")]
Seconds = Annotated[float, typer.Option("--gate-seconds", callback=_seconds,
                                          help="Time after which a gate draws no further cases.")]  # fmt: skip
Timeout = Annotated[float, typer.Option("--timeout", callback=_seconds,
                                          help="Seconds that one call of the kernel may take.")]  # fmt: skip
Device = Annotated[
    str,
    typer.Option(
        "--device",
        help="cpu: kernels are evaluated, without a GPU; cuda: they run on this machine's GPU (docs/device.md).",
    ),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print the verdict line only.")]


def kinds(given: str | None) -> tuple[str, ...] | None:
    """Kinds of baselines, from a list with commas. Raises UserError for a list without any, or with an unknown one."""
    from ..errors import UserError
    from ..measure import baselines

    if given is None:
        return None
    found = tuple(k.strip() for k in given.split(",") if k.strip())
    if not found:
        raise UserError("--baselines names no kind of baseline",
                        remedy=f"leave it out, or choose from {', '.join(baselines.kinds())}")  # fmt: skip
    baselines.named(found)
    return found


def on(device: str) -> dict[str, str]:
    """The device among the options of many checks. Nothing where it is the CPU, so that audits which began before
    there was a choice go on."""
    return {} if device == "cpu" else {"device": device}
