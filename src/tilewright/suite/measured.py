"""From a Measurement to what scores need of it."""

from __future__ import annotations

from ..measure.record import CANDIDATE, Measurement, WorkloadResult
from .run import Measured
from .scores import Timing, Transferred

HONEST = "honest"
"""The baseline that is used by default: the fastest that is right, workload by workload."""
CAUSES: dict[str, Transferred] = {
    "wrong beyond the shown workloads": "wrong", "tuned to the shown workloads": "slower", "benign": "gone",
}  # fmt: skip


def from_measurement(m: Measurement, baseline: str = HONEST) -> Measured:
    """The shown workloads as timings against ``baseline``; hidden ones come as what became of the gain."""
    shown = [w for w in m.workloads if w.kind != "hidden"]
    timings = tuple(t for w in shown if (t := _timing(w, baseline)) is not None)
    why = m.reason if m.answer in ("refused", "too noisy") else ""
    if not timings and not why:
        why = f"no measurement against the baseline '{baseline}'" if baseline != HONEST else m.reason
    return Measured(m.answer if timings or why == m.reason else "", timings, _transfer(m), why, (m.id,) if m.id else ())


def _timing(w: WorkloadResult, baseline: str) -> Timing | None:
    ratio = w.figure.ratio("" if baseline == HONEST else baseline) if w.figure else None
    if ratio is None or w.figure is None:
        return None
    i, arm = ratio.interval, w.figure.arm(CANDIDATE)
    floor = w.floor.seconds / arm.time.median if w.floor and arm and arm.time and arm.time.median else None
    name = " ".join(f"{k}={v}" for k, v in w.dims.items()) or w.name
    return Timing(name, i.median, i.low, i.high, floor, ratio.answer)


def _transfer(m: Measurement) -> Transferred:
    t = m.transfer
    if t is None or not t.hidden:
        return ""
    return "holds" if t.kept == t.hidden else CAUSES.get(t.cause, "gone")
