"""Other dtypes: in float dtypes that the task does not name but its reference takes, the outputs are within the error budget
of the float64 oracle.

Advisory for an inferred contract, also under ``--strict``: a clear error is a refusal, a wrong result a ``policy`` finding.
Where a contract promises other dtypes it decides. It looks at the given sizes, or smaller ones, only.

Source: kernels that store float32 results into a float16 output, or compute float64 in float32 (FlagGems#2310).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from ...errors import TaskError
from ...task.tensors import FLOATS
from .. import sizes
from ..case import Case, Recipe
from ..gate import Check, Gate
from ..verdict import Role
from .strides import refusal

if TYPE_CHECKING:
    from ..examination import Examination

TRIED = ("float32", "float16", "bfloat16", "float64")
ENOUGH = 1 << 12


class OtherDtypes(Gate):
    name = "other dtypes"
    proves = "right in float dtypes that the task does not name and its reference takes"

    def role(self, exam: Examination) -> Role:
        return "deciding" if exam.contract.other_dtypes == "promised" else "advisory"

    def absent(self, exam: Examination) -> str:
        if exam.contract.other_dtypes == "excluded":
            return "the contract names its dtypes"
        if exam.kernel.raw:
            return "a kernel in C exports one function a dtype"
        if exam.contract.random or exam.dtypes()[0] not in FLOATS:
            return "the main inputs are no floats" if not exam.contract.random else "results are random by contract"
        return ""

    def cases(self, exam: Examination) -> Iterable[Case]:
        first = exam.workload()
        dims = sizes.reduced(exam.sheet, first.dims, ENOUGH)
        for dtype in TRIED:
            if dtype in exam.dtypes():
                continue
            try:
                yield exam.make(Recipe(first.model_copy(update={"dtype": dtype, "dims": dims}),
                                       seed=exam.seed_for("dtypes", dtype)))  # fmt: skip
            except TaskError:  # the reference does not take this dtype
                continue

    def check(self, exam: Examination, case: Case) -> Check:
        truth = exam.truth(case)
        if truth.refused is not None or truth.baseline is None:
            return Check(skipped=f"the reference refuses {case.recipe.workload.dtype}")
        outcome = exam.run(case)
        promised = exam.contract.other_dtypes == "promised"
        if not promised and (words := refusal(outcome)):
            return Check(refusal=f"{case.recipe.workload.dtype}: {words}")
        result = exam.judge(case, outcome)
        if result.failed and not promised:
            result.cls = "policy"
        return result


GATE = OtherDtypes()
