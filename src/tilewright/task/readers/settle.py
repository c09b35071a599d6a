"""Settling a sheet: what a few real runs of the reference show goes into its contract, notes and workloads."""

from __future__ import annotations

import time
from typing import Any

import torch

from ...errors import TaskError, Unsupported
from ..task import TaskSheet, Workload
from . import observe
from .oracle import as_dtype
from .workloads import Budget, human


def behave(source: Any) -> None:
    """Run the reference at the smallest workload that it takes, and write into the sheet what was seen."""
    sheet = source.sheet
    chosen = list(sheet.workloads)
    seen, trouble = None, None
    for workload in chosen:
        try:
            seen = observe.observe(source, workload, source.problem.where)
            break
        except TaskError as e:
            trouble = e
            sheet = _drop(sheet, workload, e)
    if seen is None:
        if trouble is None:
            source.sheet = sheet
            return
        given = Workload(dims=dict(sheet.given))
        if source.inferred.base.bytes > 64 << 20 or any(w.dims == given.dims for w in chosen):
            raise trouble
        seen = observe.observe(source, given, source.problem.where)
        note = f"no derived sizes run; only the given are used ({human(source.inferred.base.bytes)})"
        sheet = sheet.model_copy(update={"workloads": (given,), "dims": {}, "notes": (*sheet.notes, note)})
    changes: dict[str, Any] = {}
    contract: dict[str, Any] = {}
    notes = list(sheet.notes)
    if seen.random:
        contract |= {"random": True, "postcondition": "distribution"}
        notes.append("the reference draws random numbers: results are compared as distributions")
    if seen.state:
        contract["state"] = True
        notes.append(f"the reference updates its state by contract: {', '.join(seen.state)}")
    if seen.mutated:
        changes["inputs"] = {
            n: v.model_copy(update={"mutated": True}) if n in seen.mutated else v for n, v in sheet.inputs.items()
        }
        notes.append(f"the reference writes its inputs in place by contract: {', '.join(seen.mutated)}")
    if seen.copies:
        notes.append(f"on the task's own values the output equals input '{seen.copies[0]}': a copy would pass there")
    if seen.constant:
        notes.append("on the task's own values all outputs are constant: a constant would pass there")
    changes["extra"] = {**sheet.extra, "copies": list(seen.copies), "state_updated": list(seen.state)}
    changes["contract"] = sheet.contract.model_copy(update=contract)
    source.sheet = sheet.model_copy(update={**changes, "notes": tuple(notes)})


def in_time(source: Any, budget: Budget) -> None:
    """Drop workloads on which the float64 oracle takes too long: operation counts miss linear algebra and loops."""
    kept: list[Workload] = []
    sheet = source.sheet
    for workload in sheet.workloads:
        start = time.monotonic()
        try:
            inputs = {k: as_dtype(v, torch.float64) for k, v in source.inputs(workload, 1).items()}
            with torch.no_grad():
                source.reference(inputs, workload, source.state(workload, 1), dtype=torch.float64)
        except (TaskError, Unsupported) as e:
            note = f"the reference does not run in float64: {e.what}"
            source.sheet = sheet.model_copy(update={"notes": (*sheet.notes, note)})
            return
        taken = time.monotonic() - start
        if taken > budget.run_seconds and kept:
            sizes = ", ".join(f"{n}={v}" for n, v in workload.dims.items())
            left = len(sheet.workloads) - len(kept)
            note = f"{left} workloads not run here: the float64 reference takes {taken:.1f} s ({sizes})"
            sheet = sheet.model_copy(update={"workloads": tuple(kept), "notes": (*sheet.notes, note)})
            break
        kept.append(workload)
    source.sheet = sheet


def _drop(sheet: TaskSheet, workload: Workload, error: TaskError) -> TaskSheet:
    sizes = ", ".join(f"{n}={v}" for n, v in workload.dims.items())
    note = f"derived sizes ({sizes}) refused: {error.what}"
    return sheet.model_copy(update={"workloads": tuple(w for w in sheet.workloads if w != workload),
                                    "notes": (*sheet.notes, note)})  # fmt: skip
