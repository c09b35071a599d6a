"""A verdict made complete for the record: ids for it and its findings, blobs for the tensors of their cases."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from typing import Any

from ..prove.finding import CaseRecord, Finding, TensorRecord
from ..prove.verdict import GateReport, Verdict

Parts = Mapping[str, Mapping[str, Any]]


def with_ids(verdict: Verdict, kernel_sha: str, task_sha: str) -> Verdict:
    """Findings without an id get their content's; the verdict one of its own, since a check may be recorded twice."""

    def named(gate: GateReport) -> GateReport:
        findings = (f if f.gate else f.model_copy(update={"gate": gate.name}) for f in gate.findings)
        return gate.model_copy(
            update={"findings": tuple(f if f.id else f.with_id(kernel_sha, task_sha) for f in findings)}
        )

    fresh = verdict.id or hashlib.sha256(os.urandom(32)).hexdigest()[:12]
    return verdict.model_copy(update={"gates": tuple(named(g) for g in verdict.gates), "kernel_sha256": kernel_sha,
                                      "task_sha256": task_sha, "id": fresh})  # fmt: skip


def with_tensors(verdict: Verdict, tensors: Mapping[str, Parts], blobs: dict[str, bytes]) -> Verdict:
    """Cases whose tensors are at hand (by finding id) name their bytes, which are added to ``blobs``."""

    def put(data: bytes) -> str:
        blobs[sha := hashlib.sha256(data).hexdigest()] = data
        return sha

    def kept(finding: Finding) -> Finding:
        if finding.id not in tensors:
            return finding
        return finding.model_copy(update={"case": _case(finding.case, tensors[finding.id], put)})

    gates = (g.model_copy(update={"findings": tuple(kept(f) for f in g.findings)}) for g in verdict.gates)
    return verdict.model_copy(update={"gates": tuple(gates)})


def _case(case: CaseRecord, parts: Parts, put: Any) -> CaseRecord:
    """The record with blobs. One budget for the whole case, so all parts are saved together."""
    import torch

    from .tensors import save_case

    together = {(part, name): value for part in ("inputs", "state", "cotangents")
                for name, value in parts.get(part, {}).items() if isinstance(value, torch.Tensor)}  # fmt: skip
    saved = save_case({f"{part}/{name}": t for (part, name), t in together.items()}, put)
    updates: dict[str, Any] = {}
    missing = []
    for part in ("inputs", "state", "cotangents"):
        records = dict(getattr(case, part))
        for name in [n for p, n in together if p == part]:
            record, told = saved[f"{part}/{name}"], records.get(name)
            if not record.blob:
                missing.append(f"{name} ({record.preview})")
            elif isinstance(told, TensorRecord) and told.preview:
                record = record.model_copy(update={"preview": told.preview})
            records[name] = record
        updates[part] = records
    if missing:
        updates["note"] = "; ".join([*([case.note] if case.note else []), *missing])
    return case.model_copy(update=updates)
