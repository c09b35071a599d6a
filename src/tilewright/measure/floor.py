"""The least time that the hardware allows for the task's compulsory work: a roofline over ceilings of this run.

Compulsory is what any kernel must do: inputs read once, outputs written once, unless the task says otherwise; never what
the candidate happens to do. Source: S. Williams, A. Waterman, D. Patterson, Roofline, 2009.
"""

from __future__ import annotations

from ..prove.case import Case
from ..task.task import TaskSheet, itemsize
from ..task.tensors import evaluate
from .ceilings import at
from .record import Cache, Ceilings, Floor


def floor(sheet: TaskSheet, case: Case, outputs_bytes: int, ceilings: Ceilings | None, cache: Cache = "warm") -> Floor:
    """The floor of one workload. Without ceilings it is 0 and refuses nothing."""
    names = {**case.dims, "itemsize": itemsize(case.recipe.workload.dtype or "float32")}
    given = sum(t.numel() * t.element_size() for t in (*case.tensors.values(), *case.state.values()))
    moved, by, flops = given + outputs_bytes, "inputs once, outputs once", 0
    if sheet.work is not None:
        moved, by = evaluate(sheet.work.bytes, names), "stated by the task"
        flops = evaluate(sheet.work.flops, names) if sheet.work.flops else 0
    if ceilings is None:
        return Floor(seconds=0.0, bytes=moved, flops=flops, bandwidth=0.0, rate=0.0, bound="unknown", by=by)
    if cache == "cold":  # what is written may stay in a cache
        moved = min(moved, given)
    reach = max(at(ceilings.read, moved), at(ceilings.copy_, moved))
    dtype = case.recipe.workload.dtype or "float32"
    rate = ceilings.rates.get(dtype, 0.0)
    memory = moved / reach if reach else 0.0
    arithmetic = flops / rate if rate else 0.0
    return Floor(seconds=max(memory, arithmetic), bytes=moved, flops=flops, bandwidth=reach, rate=rate, by=by,
                 bound="memory" if memory >= arithmetic else "arithmetic")  # fmt: skip
