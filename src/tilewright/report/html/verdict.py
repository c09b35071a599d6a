"""A verdict as a page shows it: verdict, claims, domain, gates, and the counterexample."""

from __future__ import annotations

from typing import Any

from ...ledger.records import VerdictRecord
from ...prove.finding import Finding, TensorRecord
from ...prove.verdict import GateReport, Verdict
from .. import terminal
from . import facts, words

NEAR = 4
"""Lines of source shown on either side of the one that is at fault."""


def means(g: GateReport) -> str:
    """What a gate's status means here, as the terminal says it."""
    return terminal._means(g)


def domain(v: Verdict) -> list[tuple[str, str]]:
    """What an accept holds on."""
    d = v.domain
    sizes = {n: f"{r[0]} to {r[-1]}" if len(r) == 2 else ", ".join(map(str, r)) for n, r in d.get("dims", {}).items()}
    rows = [("dtypes", ", ".join(d.get("dtypes", []))), *((f"size {n}", s) for n, s in sizes.items()),
            ("layouts", str(d.get("layouts", ""))), ("empty tensors", "yes" if d.get("empty") else "no"),
            ("special values", str(d.get("special_values", ""))), ("gradients", "yes" if d.get("gradients") else "no"),
            ("contract", str(d.get("contract", "")))]  # fmt: skip
    return [r for r in rows if r[1]] if d else []


def case(f: Finding) -> list[tuple[str, str]]:
    """The smallest case of a finding."""
    rows = [("sizes", words.dims(f.case.dims)), ("dtype", f.case.dtype), ("layout", str(f.case.options.get("layout", ""))),
            ("call", f.case.mode if f.case.mode not in ("forward", f.gate) else "")]  # fmt: skip
    rows += [(n, terminal._input(x) if isinstance(x, TensorRecord) else str(x)) for n, x in f.case.inputs.items()]
    rows += [(f"gradient into {n}", terminal._input(x)) for n, x in f.case.cotangents.items()]
    return [r for r in rows if r[1]]


def source(f: Finding, text: str) -> list[tuple[int, str, bool]]:
    """The lines around the place of a finding: number, text, whether it is the one."""
    tail = f.where.rpartition(":")[2]
    at = int(tail) if tail.isdigit() else 0
    lines = text.splitlines()
    if not 0 < at <= len(lines):
        return []
    return [(n, lines[n - 1], n == at) for n in range(max(1, at - NEAR), min(len(lines), at + NEAR) + 1)]


def view(item: VerdictRecord | Verdict) -> dict[str, Any]:
    """Everything that the template needs. Without a record there is no source to show."""
    record = item if isinstance(item, VerdictRecord) else None
    v = record.verdict if record else item
    assert isinstance(v, Verdict)
    text = record.kernel.text if record else ""
    deciding = [f for g in v.gates if g.role != "advisory" for f in g.findings]
    advisory = [f for g in v.gates if g.role == "advisory" for f in g.findings]
    recorded = words.moment(record.created) if record else ""
    return {
        "v": v, "gates": [(g, means(g)) for g in v.gates], "domain": domain(v),
        "findings": [(f, case(f), source(f, text)) for f in deciding], "advisory": advisory,
        "classes": terminal.CLASS, "sandbox": facts.rows(v.sandbox),
        "machine": facts.rows(record.machine) if record else [],
        "provenance": [(k, x) for k, x in (
            ("verdict", v.id), ("kernel", v.kernel_sha256[:16]), ("task", v.task_sha256[:16]), ("mode", v.mode),
            ("device", v.device), ("language", v.language), ("recorded", recorded), ("took", f"{v.seconds:.1f} s"),
            *facts.versions(v.versions)) if x],
    }  # fmt: skip
