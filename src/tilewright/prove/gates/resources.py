"""Resources: what a kernel needs fits the declared target: shared memory, threads, registers.

The launches at the given sizes are compiled down to machine code for the target (H200, sm_90), which needs no GPU.
Too much shared memory or too many threads is a launch that fails there. Spills are shown and decide nothing. Of a tuned
kernel, a configuration that doesn't fit is skipped by the tuner and is no fault.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from ...kernel.languages._facade import H200
from ..case import Case
from ..gate import Check, Gate, Tally
from ..verdict import Role
from ._launches import absent, computed, count, sampled

if TYPE_CHECKING:
    from ..examination import Examination

SEEN = "resources"
THREADS = 1024


class Resources(Gate):
    name = "resources"
    proves = f"shared memory, threads and registers fit an {H200.name}"
    shrinks = False

    def role(self, exam: Examination) -> Role:
        return "deciding"

    def absent(self, exam: Examination) -> str:
        return absent(exam)

    def cases(self, exam: Examination) -> Iterable[Case]:
        exam.memory[SEEN] = {}
        yield from list(sampled(exam))[:1]

    def check(self, exam: Examination, case: Case) -> Check:
        outcome = exam.run(case, binary=True)
        if (bad := exam.trouble(outcome)) is not None:
            return Check(silent=bad.silent) if bad.silent else Check(skipped=bad.summary)
        launches = [n for n in computed(outcome) if "binary" in n]
        if not launches:
            return Check(skipped="no launch")
        seen = exam.memory.setdefault(SEEN, {})
        for launch in launches:
            made = launch["binary"]
            if "refused" in made:
                return Check(
                    silent=f"{launch['function']} doesn't compile for the target: {made['refused'].splitlines()[0]}"
                )
            seen[launch["function"]] = made
            if not outcome.tuned and (problem := over(made)):
                return Check(
                    cls="wrong",
                    summary=f"{launch['function']} can't be launched on an {H200.name}: {problem[0]}",
                    where=launch["function"],
                    expected=problem[1],
                    got=problem[2],
                )
        return Check()

    def meaning(self, exam: Examination, tally: Tally) -> str:
        return "; ".join(f"{name}: {words(made)}" for name, made in list(exam.memory.get(SEEN, {}).items())[:3])


def over(made: dict[str, Any]) -> tuple[str, str, str] | None:
    """Which limit is passed: in words, allowed, needed."""
    if made["shared"] > H200.shared_memory:
        return "too much shared memory", f"at most {H200.shared_memory} bytes a program", f"{made['shared']} bytes"
    threads = made["warps"] * H200.warp_size
    if threads > THREADS:
        return "too many threads", f"at most {THREADS} threads a program", f"{threads} threads"
    if made["registers"] * threads > H200.registers:
        return "too many registers", f"at most {H200.registers} a program", f"{made['registers'] * threads}"
    return None


def size(n: int) -> str:
    """Bytes for people."""
    return f"{n} bytes" if n < 1024 else f"{n / 1024:.4g} KiB"


def words(made: dict[str, Any]) -> str:
    """Resources in a few words."""
    spills = f"{made['spills']} bytes spilled a thread" if made["spills"] else "no spills"
    shared = f", {size(made['shared'])} shared" if made["shared"] else ""
    return f"{count(made['registers'], 'register')} x {made['warps'] * H200.warp_size} threads, {spills}{shared}"


GATE = Resources()
