"""Values: on the given workload, in every promised dtype, the outputs are within the error budget of the float64 oracle
(``prove/compare.py``); so they are for hostile families of values, at the given sizes or, where those are large, at
smaller ones of the same ratio to a tile.

It proves nothing about other shapes. The task's own float arguments are tried as inputs, where a branch
may turn. Families after the public bugs that default inputs hid: all-negative rows with a
masked fill of zero or of -1e9, means far from zero, constant rows, ties, wide ranges (background: gpuemu, arXiv 2606.20128).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import torch

from ...task.tensors import Scalar
from ...task.values import FAMILIES, torch_dtype
from .. import sizes
from ..case import Case, Recipe
from ..gate import Check, Gate, Tally
from ..verdict import Claim, Role
from ._range import overflow

if TYPE_CHECKING:
    from ..examination import Examination

DRAWS = 2
THRESHOLDS = 4
ENOUGH = 1 << 14


class Values(Gate):
    name = "values"
    proves = "within the error budget of the float64 oracle on the given workload"
    plain = True

    def role(self, exam: Examination) -> Role:
        return "core"

    def cases(self, exam: Examination) -> Iterable[Case]:
        first = exam.workload()
        for draw in range(DRAWS):
            for dtype in exam.dtypes():
                w = first.model_copy(update={"dtype": dtype})
                extra = (("state", "given"),) if draw == 0 else ()
                yield exam.make(Recipe(w, seed=exam.seed_for("values", dtype, draw), extra=extra))
        w = first.model_copy(update={"dtype": exam.dtypes()[0], "dims": sizes.reduced(exam.sheet, first.dims, ENOUGH)})
        for family in FAMILIES:
            yield exam.make(Recipe(w, family=family, seed=exam.seed_for("values", family)))
        for name, value in thresholds(exam):
            own = w.model_copy(update={"scalars": {**w.scalars, name: value}})
            yield exam.make(Recipe(own, family=f"special:at {value!r}", seed=exam.seed_for("values", name, value)))

    def check(self, exam: Examination, case: Case) -> Check:
        if words := overflow(exam, case):
            return Check(skipped=words)
        return exam.result(case)

    def claims(self, exam: Examination, tally: Tally) -> tuple[Claim, ...]:
        dims = ", ".join(f"{k}={v}" for k, v in exam.workload().dims.items()) or "the given shape"
        return (Claim(kind="sampled", domain=f"{dims}; {', '.join(exam.dtypes())}",
                      strength=f"{tally.cases} inputs against float64, worst {tally.worst:.2g} of the budget"),
                )  # fmt: skip


def thresholds(exam: Examination) -> Iterator[tuple[str, float]]:
    """Float arguments of the task: inputs that equal one exactly lie on the edge of a branch, and are never drawn.

    Only those that the dtype holds exactly: else the edge lies elsewhere for the oracle.
    """
    dtype = torch_dtype(exam.dtypes()[0])
    found = [(n, v) for n, s in exam.sheet.inputs.items() if isinstance(s, Scalar) for v in s.values
             if isinstance(v, float) and 0 < abs(v) < 1e6 and float(torch.tensor(v, dtype=dtype)) == v]  # fmt: skip
    yield from found[:THRESHOLDS]


GATE = Values()
