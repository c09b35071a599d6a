"""A call of the candidate on tensors that have sizes and no memory: its Python runs, its launches are looked at."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...task.tensors import TensorSpec, evaluate
from ..case import Recipe
from ..child.session import Outcome, split
from ._beyond import layout

if TYPE_CHECKING:
    from ..examination import Examination

SLOT = "beyond memory"
CALL_S = 10.0
PROMISED = ("integers", "bool", "permutation")


def call(exam: Examination, dims: dict[str, int], dtype: str, *, turned: bool = False, **probing: Any) -> Outcome:
    """One call at ``dims``; ``turned``: inputs transposed in memory. ``probing`` goes to the evaluator (``probes.py``)."""
    session = exam.session(slot=SLOT)
    first = exam.memory.get(SLOT) or exam.make(Recipe(exam.workload(), seed=exam.seed_for("bounds", "built")))
    exam.memory[SLOT] = first
    if session.built != SLOT:  # type: ignore[attr-defined]
        if (fault := session.build(first.calling, first.state)) is not None:
            return Outcome(trouble=fault)
        session.built = SLOT  # type: ignore[attr-defined]
    w = exam.workload().model_copy(update={"dims": dims, "dtype": dtype})
    tensors, fills = {}, {}
    for name, spec in exam.sheet.inputs.items():
        if isinstance(spec, TensorSpec):
            tensors[name] = layout(spec, dims, exam.dtype_of(spec, w), turned)
            if spec.values.kind in PROMISED:
                fills[name] = ends(spec, dims)
    scalars = {n: v for n, v in first.inputs.items() if n not in tensors}
    _, trees = split(scalars)
    return session.virtual(tensors, trees, list(first.inputs), {"fills": fills, **probing}, seconds=CALL_S)


def ends(spec: TensorSpec, dims: dict[str, int]) -> list[int]:
    """Least and greatest integer that the contract promises."""
    if spec.values.kind == "bool":
        return [0, 1]
    if spec.values.kind == "permutation":
        return [0, max(spec.sizes(dims)[-1] - 1, 0)]
    low, high = (evaluate(v, dims) if isinstance(v, str) else int(v) for v in (spec.values.low, spec.values.high))
    return [low, max(high - 1, low)]
