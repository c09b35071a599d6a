"""Inputs that can only be read while the kernel runs.

What is written and put back before the call returns leaves no trace in memory, but other threads and streams see it, and
inputs in read-only memory (a mapped file, constants) end the process. So a call is made with the pages of all inputs
read-only. If it crashes there, and not without, the inputs are made read-only one at a time: the one at which the same
calls crash again is written. What a Triton launch changed is written into its arguments in the candidate's process, so
these pages hold launches too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ...task.tensors import TensorSpec
from ..case import Case
from ..child.session import same_bits
from ..gate import Check

if TYPE_CHECKING:
    from ..examination import Examination

Episode = Callable[["Examination", Case, tuple[str, ...]], Check]
LANGUAGES = ("native", "torch", "triton")
CRASHES = "crashes"


def watched(exam: Examination, case: Case, episode: Episode, words: str) -> Check:
    """What an episode shows with its inputs read-only; ``words``: how a write to one is told (none: nothing to seal)."""
    names = readable(exam, case) if words else ()
    result = episode(exam, case, names)
    if not names or result.got != CRASHES or episode(exam, case, ()).got == CRASHES:
        return result
    for name in names:
        if episode(exam, case, (name,)).got == CRASHES:
            return Check(cls="wrong", summary=f"input '{name}' is written {words}", where=name,
                         expected="inputs are only read", got=f"a write to '{name}'")  # fmt: skip
    return result


def readable(exam: Examination, case: Case) -> tuple[str, ...]:
    """Inputs that neither the contract nor the reference changes, where the kernel runs in memory that can be sealed."""
    if exam.kernel.language not in LANGUAGES or exam.place is not None:
        return ()
    after = exam.truth(case).baseline_after
    spared = {n for n, s in exam.sheet.inputs.items() if isinstance(s, TensorSpec) and s.mutated}
    spared |= {n for n, t in after.items() if n in case.tensors and not same_bits(t, case.tensors[n])}
    return tuple(n for n in case.tensors if n not in spared)
