"""Launch limits: sizes at which a grid axis passes what a device allows, and launches that fail without a word.

The second and third axis of a grid end at 65535. Each dim in turn is as large as 65,537 (and 131,072), the others small.
After each call the driver is asked for an error that nobody took: a launch that failed leaves its output as it was, and
a kernel in C++ that does not ask returns as if nothing had happened. Sources: "invalid configuration argument" threads
of every kernel library; SAY-5/kernelcheck (tall shapes).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from ...errors import TaskError
from .. import sizes
from ..case import Case, Recipe
from ..gate import Check, Gate, Tally
from ..verdict import Claim, Role
from ._device import absent, prefixed

if TYPE_CHECKING:
    from ..examination import Examination

BEYOND = (65537, 131072)
MOST_BYTES = 256 << 20


class LaunchLimits(Gate):
    name = "launch limits"
    proves = "right where a grid axis would pass 65535; no launch fails silently"

    def role(self, exam: Examination) -> Role:
        return "deciding"

    def absent(self, exam: Examination) -> str:
        return absent(exam)

    def cases(self, exam: Examination) -> Iterable[Case]:
        first = exam.workload()
        small = sizes.small(exam.sheet, first.dims)
        yield exam.make(Recipe(first, seed=exam.seed_for("launch limits")))
        for name in exam.sheet.dims:
            for size in BEYOND:
                dims = sizes.put(exam.sheet, small, name, size)
                if dims is None or dims[name] <= 65535 or sizes.nbytes(exam.sheet, dims) > MOST_BYTES:
                    continue
                try:
                    w = first.model_copy(update={"dims": dims})
                    yield exam.make(Recipe(w, seed=exam.seed_for("launch limits", name, size)))
                    break
                except TaskError:
                    continue

    def check(self, exam: Examination, case: Case) -> Check:
        outcome = exam.run(case)
        result = exam.judge(case, outcome)
        if left := outcome.seen.get("left"):
            return Check(cls="wrong", summary=f"a launch fails and the call returns as if nothing had happened: {left}",
                         expected="an error", got="no error", detail=result.summary)  # fmt: skip
        return prefixed(result, "with a long axis") if max(case.dims.values(), default=0) > 65535 else result

    def claims(self, exam: Examination, tally: Tally) -> tuple[Claim, ...]:
        if tally.cases < 2:
            return ()
        return (Claim(kind="device", domain="each dim above 65535", strength=f"{tally.cases} sizes"),)


GATE = LaunchLimits()
