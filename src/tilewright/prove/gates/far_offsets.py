"""Far offsets: inputs whose last elements lie beyond 2³¹ elements, in little memory: small tensors with a huge stride.

An address computed in 32 bits wraps there and reads or writes elsewhere: a crash, or garbage. The elements between are
never touched, so they need room and no time. It asks for strided inputs, so it decides where the contract promises
those. Sources: the int32 overflows of every kernel library; PyTorch's own tests of 64-bit indexing.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from .. import sizes
from ..case import Case, Recipe
from ..gate import Check, Gate, Tally
from ..verdict import Claim, Role
from ._device import absent, prefixed

if TYPE_CHECKING:
    from ..examination import Examination

BEYOND = (1 << 31) + 64


class FarOffsets(Gate):
    name = "far offsets"
    proves = "right on inputs that reach past 2^31 elements"
    shrinks = False

    def role(self, exam: Examination) -> Role:
        return "deciding" if exam.contract.layouts == "promised" else "advisory"

    def absent(self, exam: Examination) -> str:
        if exam.kernel.raw:
            return "takes contiguous buffers"
        if exam.contract.layouts == "excluded":
            return "the contract excludes inputs that are not contiguous"
        return absent(exam)

    def cases(self, exam: Examination) -> Iterable[Case]:
        w = exam.workload().model_copy(update={"dims": sizes.reduced(exam.sheet, exam.workload().dims, 1 << 14)})
        yield exam.make(Recipe(w, seed=exam.seed_for("far offsets")))

    def check(self, exam: Examination, case: Case) -> Check:
        if not any(t.dim() and t.shape[0] > 1 for t in case.tensors.values()):
            return Check(skipped="no input has a first axis to stretch")
        outcome = exam.run(case, far=BEYOND)
        if outcome.trouble is not None and outcome.trouble.kind == "memory":
            return Check(silent=f"no room on the device: {outcome.trouble.message}")
        result = exam.judge(case, outcome)
        if result.failed and outcome.trouble is not None and outcome.trouble.kind in ("exception", "interface"):
            return Check(refusal=f"{result.summary}")
        return prefixed(result, f"with its inputs stretched past 2^31 elements (first stride {BEYOND} over the first size)",
                        None if exam.contract.layouts == "promised" else "policy")  # fmt: skip

    def claims(self, exam: Examination, tally: Tally) -> tuple[Claim, ...]:
        if tally.refusals or not tally.cases:
            return ()
        return (Claim(kind="device", domain="offsets beyond 2^31 elements", strength="one size, all inputs stretched"),)


GATE = FarOffsets()
