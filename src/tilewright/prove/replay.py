"""Replay: keep a finding's case so that exactly that case can be run again, and run it again.

The case's tensors are kept as bytes; what was too large to keep is drawn again from the recipe and the seed, which only
works where the recipe was not edited by the shrinker (the finding says so).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch

from ..errors import UserError
from ..kernel import Kernel
from ..task.task import TaskSheet
from .case import from_record
from .child.session import Limits
from .examination import Examination
from .examine import open_task
from .finding import CaseRecord, Finding, TensorRecord
from .gate import Check
from .gates import gate
from .verdict import GateReport, Verdict

SaveCase = Callable[[Mapping[str, torch.Tensor]], dict[str, TensorRecord]]
Load = Callable[[TensorRecord], torch.Tensor]


def attach(verdict: Verdict, tensors: Mapping[str, Mapping[str, Any]], save: SaveCase) -> Verdict:
    """The verdict with the tensors of its findings' cases kept through ``save``."""

    def kept(f: Finding) -> Finding:
        held = tensors.get(f.id)
        if held is None:
            return f
        parts = {}
        for part in ("inputs", "state", "cotangents"):
            plain = {n: v for n, v in held[part].items() if isinstance(v, torch.Tensor)}
            saved = {
                n: r.model_copy(update={"preview": _old(f.case, part, n) or r.preview}) for n, r in save(plain).items()
            }
            parts[part] = {n: saved.get(n, v) for n, v in held[part].items()}
        return f.model_copy(update={"case": f.case.model_copy(update=parts)})

    gates = tuple(g.model_copy(update={"findings": tuple(kept(f) for f in g.findings)}) for g in verdict.gates)
    return verdict.model_copy(update={"gates": gates})


def _old(case: CaseRecord, part: str, name: str) -> str:
    record = getattr(case, part).get(name)
    return record.preview if isinstance(record, TensorRecord) else ""


def replay(
    finding: Finding, kernel: Kernel, sheet: TaskSheet, load: Load, *, strict: bool = False, sandbox: str = "best",
    timeout: float = 60.0,
) -> Check:  # fmt: skip
    """Run a finding's case again on ``kernel`` (its file as it is given), before the problem at ``sheet.path``."""
    if not finding.case.mode:
        raise UserError(f"finding {finding.id} has no case to run again")
    limits = Limits(seconds=timeout)
    extra = sheet.extra.get("opened", {})
    now, session = open_task(sheet.path, limits=limits, sandbox=sandbox, **extra)
    exam = Examination(now, kernel, session, strict=strict, sandbox=sandbox, limits=limits, seed=1)
    try:
        parts = {
            part: {n: load(r) if isinstance(r, TensorRecord) else r for n, r in getattr(finding.case, part).items()}
            for part in ("inputs", "state", "cotangents")
        }
        case = from_record(finding.case, parts["inputs"], parts["state"], parts["cotangents"])
        return gate(finding.gate).check(exam, case)
    finally:
        exam.close()
        exam.reference.close()


def report_of(finding: Finding, reports: tuple[GateReport, ...]) -> GateReport | None:
    """The gate report that a finding stands in."""
    return next((g for g in reports if any(f.id == finding.id for f in g.findings)), None)
