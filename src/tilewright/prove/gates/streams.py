"""Streams: a kernel runs on the caller's current stream, behind what the caller put there before.

The inputs are garbage until a slow producer on the current stream has run; once on the default stream and once on another
one. A launch on a stream of its own, or one that the candidate left on the default stream, reads the garbage, or its
result is not there when the caller's stream has finished. Sources: work on unsynchronised side streams (KernelBench
PR 82), graphs timed on the wrong stream (flashinfer-bench #427).
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

WORDS = {"late": "behind a slow producer on the current stream", "side": "on a side stream behind a slow producer"}


class Streams(Gate):
    name = "streams"
    proves = "runs on the caller's stream, in its order"
    shrinks = False

    def role(self, exam: Examination) -> Role:
        return "deciding"

    def absent(self, exam: Examination) -> str:
        return absent(exam)

    def cases(self, exam: Examination) -> Iterable[Case]:
        for kind in WORDS:
            yield given(exam, f"streams {kind}", stream=kind)
            if (case := given(exam, f"streams {kind}", grad=True, stream=kind)).recipe.grad:
                yield case

    def check(self, exam: Examination, case: Case) -> Check:
        kind = str(case.recipe.options().get("stream", "side"))
        outcome = exam.run(case, stream=kind)
        if outcome.late:
            return Check(cls="wrong", summary=f"{WORDS[kind]}: '{outcome.late[0]}' changes after that stream is done",
                         where=outcome.late[0], expected="complete by then", got="written later")  # fmt: skip
        return prefixed(exam.judge(case, outcome), WORDS[kind])

    def claims(self, exam: Examination, tally: Tally) -> tuple[Claim, ...]:
        return (
            Claim(kind="device", domain="the given workload", strength="in order on the current and on a side stream"),
        )


GATE = Streams()
