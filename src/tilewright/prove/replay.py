"""Replay: keep a finding's case so that exactly that case can be run again, and run it again.

The case's tensors are kept as bytes; what was too large to keep is drawn again from the recipe and the seed, which only
works where the recipe was not edited by the shrinker (the finding says so).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import torch

from ..errors import UserError
from ..kernel import Kernel
from ..task.task import TaskSheet
from .case import Case, from_record
from .child.session import Limits
from .device import machine
from .device.examination import DeviceExamination
from .examination import Examination
from .examine import open_task
from .finding import CaseRecord, Finding, TensorRecord
from .gate import Check
from .gates import gate
from .verdict import Verdict

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
    timeout: float = 60.0, device: str = "cpu",
) -> Check:  # fmt: skip
    """Run a finding's case again on ``kernel`` (its file as it is given), before the problem at ``sheet.path``.
    ``device``: what the verdict names; anything but ``cpu`` needs a GPU."""
    if not finding.case.mode:
        raise UserError(f"finding {finding.id} has no case to run again")
    limits = Limits(seconds=timeout)
    place = None if device == "cpu" else machine.start("cuda", sandbox=sandbox, limits=limits)
    now, session = open_task(sheet.path, limits=limits, sandbox=sandbox, **sheet.extra.get("opened", {}))
    root = finding.case.options.get("root", 1)
    opened = Examination if place is None else partial(DeviceExamination, place)
    exam = opened(now, kernel, session, strict=strict, sandbox=sandbox, limits=limits, seed=root)
    try:
        found = gate(finding.gate)
        return found.check(exam.at(found), _case(exam, finding, load))
    finally:
        exam.close()
        exam.reference.close()


def _case(exam: Examination, finding: Finding, load: Load) -> Case:
    """The case as it was kept; drawn again from its recipe where it was too large to keep and was not edited since."""
    record = finding.case
    kept = [r for part in (record.inputs, record.state, record.cotangents) for r in part.values()
            if isinstance(r, TensorRecord)]  # fmt: skip
    if all(r.blob or 0 in r.shape for r in kept) or record.options.get("changed"):
        parts = [{n: load(r) if isinstance(r, TensorRecord) else r for n, r in part.items()}
                 for part in (record.inputs, record.state, record.cotangents)]  # fmt: skip
        return from_record(record, *parts)
    return exam.make(from_record(record, {}, {}, {}).recipe)
