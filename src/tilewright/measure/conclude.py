"""From workloads to one Measurement."""

from __future__ import annotations

import datetime
import json
from typing import TYPE_CHECKING, Any

from ..ledger.records import contract_hash, this_machine
from . import hidden, state
from .decide import overall
from .record import CANDIDATE, Baseline, Ceilings, Interval, Measurement, WorkloadResult
from .statistics import combined, paired

if TYPE_CHECKING:
    from .bench import Run

RANK = {"right": 0, "unavailable": 1, "wrong": 2}


def conclude(
    run: Run, shown: list[WorkloadResult], secrets: list[WorkloadResult], spent: int, bases: list[Baseline],
    tops: Ceilings | None, compile_s: float, before: dict[str, Any], seconds: float,
) -> Measurement:  # fmt: skip
    """One answer over the shown workloads; hidden ones are told apart, and a wrong one among them refuses it."""
    p, exam = run.protocol, run.exam
    ratio, noise, varies = _joined(shown, p)
    answer, reason = overall(shown, ratio, noise, p)
    refusals = [f"{r.name}: {x}" for r in (*shown, *secrets) for x in r.refusals]
    moved = hidden.transfer(shown, secrets, spent) if secrets else None
    if moved is not None and moved.cause.startswith("wrong"):
        bad = next(r for r in secrets if r.answer == "refused")
        answer, reason = "refused", f"hidden workload {bad.name}: {bad.reason}"
    return Measurement(
        answer=answer, reason=reason, kernel=run.kernel.path, kernel_sha256=run.kernel.sha256(),
        language=run.kernel.language, task=exam.sheet.name, task_sha256=exam.sheet.sha256(),
        contract=contract_hash(exam.sheet, run.verdict.mode), mode=run.verdict.mode, verdict=run.verdict.id,
        device=run.o.device, device_class=_class(run.o.device), protocol=p.sha256(), protocol_version=p.version,
        ratio=ratio, noise=noise, variation=varies, baselines=tuple(bases), workloads=(*shown, *secrets),
        transfer=moved, ceilings=tops, state={"before": before, "after": state.snapshot(run.o.device)},
        compile_s=compile_s, refusals=tuple(refusals), notes=tuple(run.notes), versions=state.versions(),
        seconds=seconds, created=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
    )  # fmt: skip


def _class(device: str) -> str:
    from .bench import device_class

    return device_class(device)


def _joined(shown: list[WorkloadResult], protocol: Any) -> tuple[Interval | None, float, float | None]:
    """The geometric mean of the ratios to the honest baselines, the widest noise band, the largest variation."""
    noise = max((r.figure.noise for r in shown if r.figure), default=0.0)
    noise, rows, varies = max(noise, protocol.smallest_effect), [], []
    for r in shown:
        figure = r.figure
        ratio = figure.ratio() if figure else None
        lead = figure.arm(CANDIDATE) if figure else None
        best = figure.arm(figure.honest) if figure and ratio else None
        if figure is None or ratio is None or lead is None or best is None:
            return None, noise, None
        rows.append(paired(lead.blocks, best.blocks))
        varies.append(ratio.variation)
    return (combined(rows, protocol), noise, max(varies)) if rows else (None, noise, None)


def merge(known: dict[str, Baseline], found: list[Baseline]) -> None:
    """A baseline is right if it is so at every workload; its compile time is the longest."""
    for b in found:
        old = known.get(b.name)
        if old is None:
            known[b.name] = b
            continue
        worse = b if RANK[b.status] > RANK[old.status] else old
        times = [x for x in (old.compile_s, b.compile_s) if x is not None]
        known[b.name] = worse.model_copy(update={"compile_s": max(times, default=None)})


def machine(device: str) -> dict[str, Any]:
    """What must be alike for two times to be compared: the machine, without its name, and the versions."""
    found = {k: v for k, v in json.loads(this_machine()).items() if k != "host"} | {"versions": state.versions()}
    if device.startswith("cuda"):
        from . import gpu_state

        found["gpu"] = gpu_state.identity(device)
    return found
