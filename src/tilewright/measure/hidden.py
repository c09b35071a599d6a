"""Hidden workloads: drawn from a secret seed on axes that nobody can list, used once, and counted.

Sizes lie between and around the announced ones, of about their volume, mostly odd; so a kernel that knows the announced
workloads by heart, or that tuned itself to them, shows. Source: kernel-fingerprinting (2026): 16 of 53 gains on announced
sizes did not transfer.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy

from ..prove import sizes
from ..task.task import TaskSheet, Workload
from .record import CANDIDATE, Transfer, WorkloadResult

SPREAD = 1.6
TRIES = 200


def draw(sheet: TaskSheet, count: int, rng: numpy.random.Generator) -> list[Workload]:
    """Up to ``count`` lawful workloads that were not announced; fewer where the contract leaves no room."""
    known = {tuple(sorted(w.dims.items())) for w in sheet.workloads}
    found: list[Workload] = []
    for _ in range(TRIES):
        if len(found) == count or not sheet.dims or not sheet.workloads:
            break
        model = sheet.workloads[int(rng.integers(len(sheet.workloads)))]
        dims = _near(sheet, model.dims, rng)
        key = tuple(sorted(dims.items()))
        if key not in known and sizes.legal(sheet, dims) and _alike(sheet, dims, model.dims):
            known.add(key)
            found.append(model.model_copy(update={"dims": dims, "kind": "hidden"}))
    return found


def _near(sheet: TaskSheet, dims: dict[str, int], rng: numpy.random.Generator) -> dict[str, int]:
    drawn = dict(dims)
    for name, size in dims.items():
        spec = sheet.dims.get(name)
        if spec is None:
            continue
        if spec.sizes is not None:
            drawn[name] = int(rng.choice(spec.sizes))
            continue
        wanted = round(size * math.exp(rng.uniform(-math.log(SPREAD), math.log(SPREAD))))
        drawn[name] = sizes.near(spec, max(1, wanted)) or size
    return drawn


def _alike(sheet: TaskSheet, dims: dict[str, int], model: dict[str, int]) -> bool:
    """About as much work: a gain that shrinks with the problem is no fault."""
    ratio = sizes.elements(sheet, dims) / max(1, sizes.elements(sheet, model))
    return 1 / 2 <= ratio <= 2


def transfer(shown: Sequence[WorkloadResult], hidden: Sequence[WorkloadResult], spent: int) -> Transfer:
    """How much of what was shown holds on hidden workloads. A gain is kept where the answer is ``faster`` too; a kernel
    without a gain keeps what it has where it is right and not slower."""
    gained = any(r.answer == "faster" for r in shown)
    judged = [r for r in hidden if r.answer != "too noisy"]
    kept = [r for r in judged if r.answer == "faster" or (not gained and r.answer == "no measurable gain")]
    rate = len(kept) / len(judged) if judged else None
    return Transfer(shown=len(shown), hidden=len(judged), kept=len(kept), rate=rate, spent=spent,
                    cause=_cause([r for r in judged if r not in kept], gained))  # fmt: skip


def _cause(lost: Sequence[WorkloadResult], gained: bool) -> str:
    if not lost:
        return ""
    if any(r.answer == "refused" and "wrong" in r.reason for r in lost):
        return "wrong beyond the shown workloads"
    if gained and any(r.answer == "slower" for r in lost):
        return "tuned to the shown workloads"
    return "benign: the gain is smaller than the noise there" if gained else "benign"


def time_of(result: WorkloadResult) -> float | None:
    """Median seconds of the kernel at a workload."""
    arm = result.figure.arm(CANDIDATE) if result.figure else None
    return arm.time.median if arm and arm.time else None
