"""Graph replay: captured into a CUDA graph on some inputs and replayed on others, the results follow the inputs.

The call is warmed up and captured; then the inputs are rewritten in place, the outputs are filled with NaN bytes, and the
graph is replayed. What a kernel decided on the host while it was captured (a value read back, a launch that the
graph did not see, a pointer kept elsewhere) stays as it was, and shows. A call that torch refuses to capture is refused
clearly and no fault. Sources: flashinfer-bench #414 (a stale output passed), hazard lists of kernel libraries.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from ..case import Case
from ..gate import Check, Gate, Tally
from ..verdict import Claim, Role
from ._device import absent, given, prefixed

if TYPE_CHECKING:
    from ..examination import Examination


class GraphReplay(Gate):
    name = "graph replay"
    proves = "a captured graph gives the right results on other inputs"
    shrinks = False

    def role(self, exam: Examination) -> Role:
        return "deciding"

    def absent(self, exam: Examination) -> str:
        return absent(exam) or ("results are random by contract" if exam.contract.random else "") or (
            "the contract changes inputs in place, which replays would do again" if _mutates(exam) else "")  # fmt: skip

    def cases(self, exam: Examination) -> Iterable[Case]:
        yield given(exam, "graph replay")

    def check(self, exam: Examination, case: Case) -> Check:
        outcome = exam.run(case, graph=True)
        if outcome.trouble is not None and outcome.trouble.kind == "capture":
            exam.session(fresh=True)  # a broken capture leaves the device's context in an unknown state
            return Check(refusal=f"can't be captured: {outcome.trouble.message}")
        return prefixed(exam.judge(case, outcome), "captured into a graph and replayed on other inputs")

    def claims(self, exam: Examination, tally: Tally) -> tuple[Claim, ...]:
        if tally.refusals:
            return ()
        return (Claim(kind="device", domain="the given workload", strength="right when replayed on other inputs"),)


def _mutates(exam: Examination) -> bool:
    return any(getattr(s, "mutated", False) for s in exam.sheet.inputs.values())


GATE = GraphReplay()
