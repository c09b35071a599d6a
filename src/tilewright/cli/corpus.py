"""``tilewright corpus``."""

from __future__ import annotations

import json as jsonlib
from pathlib import Path
from typing import Annotated, Any

import typer

from . import _options as o
from .audit import Fresh, Jobs

Folder = Annotated[Path, typer.Argument(help="Folder with labelled kernels (labels.toml).", metavar="[DIR]")]
Only = Annotated[str, typer.Option("--only", help="Only kernels whose name contains this.")]
Mode = Annotated[str, typer.Option("--mode", help="default, strict or both.")]
NoUsual = Annotated[bool, typer.Option("--no-usual", help="Leave out the field's usual check.")]
Mutants = Annotated[
    int,
    typer.Option(
        "--mutants", help="Also check this many mutants of each right kernel, made mechanically.", metavar="N", min=0
    ),
]
MutantsOnly = Annotated[bool, typer.Option("--mutants-only", help="Check mutants and nothing else.")]
Every = Annotated[
    int, typer.Option("--every", help="Only every n-th kernel, spread over all families.", metavar="N", min=1)
]


def command(
    folder: Folder = Path("corpus"),
    jobs: Jobs = 2,
    mode: Mode = "both",
    only: Only = "",
    every: Every = 1,
    no_usual: NoUsual = False,
    mutants: Mutants = 0,
    mutants_only: MutantsOnly = False,
    json: o.Json = None,
    fresh: Fresh = False,
    ledger: o.LedgerPath = None,
    sandbox: o.Sandbox = "best",
    seed: o.Seed = None,
    gate_seconds: o.Seconds = 20.0,
    timeout: o.Timeout = 60.0,
    device: o.Device = "cpu",
) -> None:
    """Grade the verifier on kernels with planted faults and right controls: kill rate and false alarms per gate, beside
    the field's usual check (three random inputs of one shape, allclose at 1e-2).

    Exit code: 0 as labelled, 1 a kill was lost or a false alarm raised, 2 an error.
    """
    from .. import report
    from ..corpus import grade as grading
    from ..corpus import scoring
    from ..errors import UserError
    from ..report import corpus_table

    report.must_be_writable(json)
    modes = {"both": grading.MODES, "default": ("default",), "strict": ("strict",)}.get(mode)
    if modes is None:
        raise UserError(f"mode is '{mode}'", remedy="use default, strict or both")
    if mutants_only and not mutants:
        raise UserError("--mutants-only without --mutants", remedy="say how many of each kernel: --mutants 1")
    options = {"sandbox": sandbox, "seed": seed, "gate_seconds": gate_seconds, "timeout": timeout,
               **o.on(device)}  # fmt: skip
    data: dict[str, Any] = {}
    code, done = 0, None
    picked = scoring.chosen(folder, each=mutants, only=only, every=every) if mutants else []
    if not mutants_only:
        with corpus_table.live() as notice:
            done = grading.grade(folder, jobs=jobs, ledger=ledger, modes=modes, only=only, every=every,
                                 usual=not no_usual, fresh=fresh, notice=notice, **options)  # fmt: skip
        corpus_table.show(done)
        data, code = done.data(), done.exit_code
    if mutants:
        scored = _mutants(folder, picked, jobs=jobs, ledger=ledger, fresh=fresh, **options)
        data["mutants"] = scored.data()
        code = code or scored.exit_code
    if done is not None:
        corpus_table.show_lost(done)
    if json is not None:
        report.write_text(json, jsonlib.dumps(data, indent=1))
    raise typer.Exit(code)


def _mutants(folder: Path, chosen: list[Any], **options: Any) -> Any:
    from ..corpus import scoring
    from ..report import audit_table, corpus_table

    known = scoring.equivalent(folder)
    with audit_table.live(sum(m.key not in known for m in chosen)) as notice:
        scored = scoring.score(chosen, known, notice=notice, **options)
    corpus_table.show_mutants(scored)
    return scored
