"""Examine: the order of work, cheap gates first, from task and kernel to verdict.

read the kernel (no code runs) → read the problem (sealed child) → task audit → gates → verdict
"""

from __future__ import annotations

import importlib.util
import time
from functools import partial
from pathlib import Path
from typing import Any

from ..errors import TaskError, Unsupported, brief
from ..kernel import Kernel, languages, read
from ..task.readers.workloads import human
from ..task.task import TaskSheet
from . import sizes
from .child.pool import server
from .child.reference_session import ReferenceSession
from .child.session import Limits, Trouble, folders
from .device import machine
from .device.examination import DeviceExamination, untried
from .examination import Examination, Progress
from .gates import all_gates
from .gates._derived import note
from .gates.shapes import TRIED
from .verdict import Claim, GateReport, Verdict, decide

DECLARED = {"triton": "NVIDIA H200"}  # the device that the façade speaks for: a branch for another one is not taken


def open_task(problem: str, *, overrides: str | None = None, reference: str | None = None, limits: Limits | None = None,
              sandbox: str = "best") -> tuple[TaskSheet, ReferenceSession]:  # fmt: skip
    """Read a problem in a sealed child. Raises TaskError with the place in the user's file."""
    if not Path(problem.partition("::")[0]).exists():
        raise TaskError(f"problem '{problem}' does not exist", remedy="check the path")
    session = ReferenceSession(limits=limits, sandbox=sandbox, reads=folders(problem, overrides, reference))
    sheet = session.describe(problem, overrides=overrides, reference=reference)
    if isinstance(sheet, Trouble):
        session.close()
        raise TaskError(
            _problem_words(sheet), where=sheet.where, remedy=sheet.remedy, detail=sheet.detail or sheet.output or None
        )
    given = {k: v for k, v in (("overrides", overrides), ("reference", reference)) if v}
    if given:
        sheet = sheet.model_copy(update={"extra": {**sheet.extra, "opened": given}})
    session.opened = (problem, {"overrides": overrides, "reference": reference})  # type: ignore[attr-defined]
    return sheet, session


def _problem_words(t: Trouble) -> str:
    if t.kind in ("crash", "timeout", "exit", "protocol"):
        return f"reading the problem failed: {t.message}"
    if t.type == "TaskError":
        return t.message
    return f"the problem file raises {t.type}: {brief(t.message, 'run the problem file by itself')}"


def check(
    problem: str,
    kernel: str | Kernel,
    *,
    strict: bool = False,
    all_gates_run: bool = False,
    overrides: str | None = None,
    reference: str | None = None,
    seed: int | None = None,
    limits: Limits | None = None,
    sandbox: str = "best",
    gate_seconds: float = 20.0,
    progress: Progress | None = None,
    device: str = "cpu",
) -> tuple[Verdict, Examination]:
    """Examine a kernel. Returns the verdict, and the examination with the tensors of its findings. ``device``: ``cpu``
    (evaluated here) or ``cuda``."""
    started = time.monotonic()
    if isinstance(kernel, str):
        kernel = read(kernel)
    if importlib.util.find_spec(f"{languages.__name__}.{kernel.language}") is None:
        raise Unsupported(f"kernels in '{kernel.language}' can't be checked yet", where=kernel.path,
                          remedy="check its Triton, torch, C or CUDA C++ form")  # fmt: skip
    place = None
    if machine.named(device) != "cpu":
        machine.runs_there(kernel.language, kernel.path)
        place = machine.started(device, sandbox)
    sheet, session = open_task(problem, overrides=overrides, reference=reference, limits=limits, sandbox=sandbox)
    opened = Examination if place is None else partial(DeviceExamination, place)
    exam = opened(sheet, kernel, session, strict=strict, seed=seed, limits=limits, sandbox=sandbox,
                  gate_seconds=gate_seconds, progress=progress)  # fmt: skip
    try:
        exam.warm()
        reports = run_gates(exam, every=all_gates_run)
    finally:
        exam.close()
        exam.reference.close()
    return assemble(exam, reports, time.monotonic() - started), exam


def run_gates(exam: Examination, *, every: bool = False) -> tuple[GateReport, ...]:
    """All gates in order; stops at the first certain rejection unless ``every``."""
    reports: list[GateReport] = []
    for gate in all_gates():
        report = untried(exam, gate) or gate.run(exam.at(gate))
        reports.append(report)
        note(exam, report)
        certain = report.role != "advisory" and report.status == "fail" and any(f.replays for f in report.findings)
        if certain and not every:
            break
    return tuple(reports)


def assemble(exam: Examination, reports: tuple[GateReport, ...], seconds: float) -> Verdict:
    """The verdict from the gates' reports."""
    verdict, reason = decide(reports)
    claims: tuple[Claim, ...] = tuple(c for g in reports for c in g.claims) if verdict != "reject" else ()
    return Verdict(
        verdict=verdict,
        reason=reason,
        claims=claims,
        domain=domain(exam),
        gates=reports,
        task=exam.sheet.name,
        kernel=exam.kernel.path,
        kernel_sha256=exam.kernel.sha256(),
        task_sha256=exam.sheet.sha256(),
        language=exam.kernel.language,
        device="cpu" if exam.place is None else exam.place.target,
        mode="strict" if exam.strict else "default",
        sandbox=exam.sealed,
        seconds=seconds,
        versions=server().versions,
        notes=(*exam.sheet.notes, *left_out(exam)),
    )


def left_out(exam: Examination) -> list[str]:
    """Workloads that a check can't afford, in words."""
    sheet = exam.sheet
    return [f"workload {', '.join(f'{n}={v}' for n, v in w.dims.items())} not run here: "
            f"{human(sizes.nbytes(sheet, w.dims, w.dtype or exam.dtypes()[0]))}"
            for w in sheet.workloads if not sizes.affordable(sheet, w.dims, w.dtype or exam.dtypes()[0])]  # fmt: skip


def domain(exam: Examination) -> dict[str, Any]:
    """What an accept holds on. ``tried``: the largest size of each dim at which the kernel was run and was right."""
    c = exam.contract
    given = exam.workload().dims
    tried = exam.memory.get(TRIED, {})
    return {
        "dtypes": list(exam.dtypes()),
        "dims": {n: [d.low, d.high] if d.sizes is None else list(d.sizes) for n, d in exam.sheet.dims.items()},
        "tried": {n: max(given.get(n, 0), tried.get(n, 0)) for n in exam.sheet.dims},
        "layouts": "any" if c.layouts == "promised" else "contiguous",
        "empty": c.empty == "promised",
        "special_values": c.nan if c.special_values == "promised" else "finite values only",
        "gradients": c.gradients == "promised",
        "preconditions": list(c.preconditions),
        "contract": "inferred" if c.inferred else "stated",
        "target": DECLARED.get(exam.kernel.language, "") if exam.place is None else exam.place.name,
    }
