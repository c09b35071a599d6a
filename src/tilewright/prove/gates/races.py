"""Races: no two programs of a launch touch the same element unless both only read, or both go by atomics.

The evaluator runs every program of a grid and keeps, for each element of memory that a launch may write, who wrote it
and who read it. Two programs on one element, at least one of them writing, in any order that the device may choose, is
a race, whether or not a run shows it. Programs that write equal bits are a note: the order can't show.

Beside the sampled sizes, all sizes at once are put to a solver (``_proofs.py``); its counterexamples are run like any
other case.

Where programs order themselves (locks, tickets, "last one out"), who comes first is not decided here: such launches
are left out, and the gate says so. One thing is: what every program stores after its last atomic, another that reads it
in the same launch can't wait for. Races between warps of one program are the compiler's and are not looked for.
Sources: halo reads of an in-place stencil, overlapping last tiles, split sums without atomics (HazyResearch/
flash-fft-conv#12, Dao-AILab/flash-attention#414); GPUVerify (Betts et al., 2012) for the two-thread view.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from ..case import Case
from ..gate import Check, Gate, Tally
from ..verdict import Claim, Role
from . import _proofs
from ._launches import absent, computed, count, outcome_of, sampled, short

if TYPE_CHECKING:
    from ..examination import Examination

SEEN = "races"


class Races(Gate):
    name = "races"
    proves = "no program reads or writes what another program of the launch writes"

    def role(self, exam: Examination) -> Role:
        return "deciding"

    def absent(self, exam: Examination) -> str:
        return absent(exam)

    def cases(self, exam: Examination) -> Iterable[Case]:
        exam.memory[SEEN] = {"launches": 0, "programs": 0, "equal": set(), "atomics": False}
        yield from sampled(exam)
        yield from _proofs.ask(exam, "races")

    def check(self, exam: Examination, case: Case) -> Check:
        outcome = outcome_of(exam, case)
        if (bad := exam.trouble(outcome)) is not None:
            return Check(silent=bad.silent) if bad.silent else Check(skipped=bad.summary)
        seen = exam.memory.setdefault(SEEN, {"launches": 0, "programs": 0, "equal": set(), "atomics": False})
        launches = computed(outcome)
        if not launches:
            return Check(skipped="no launch")
        undecided = ""
        for launch in launches:
            races = [r for r in launch["races"] if not r["same_value"]]
            seen["equal"] |= {short(r["where"]) for r in launch["races"] if r["same_value"]}
            if races and (launch["waits"] or launch["synchronises"]):
                if late := [r for r in races if r["kind"] == "read/write" and r["argument"] in _late(launch)]:
                    return _check(launch, late[0])
                undecided = f"programs of {launch['function']} order themselves by atomics, which is not followed here"
                continue
            if races:
                return _check(launch, races[0])
            seen["launches"] += 1
            seen["programs"] += launch["programs"]
            seen["atomics"] |= any(w["atomic"] for w in launch["writes"].values())
        return Check(silent=undecided) if undecided else Check()

    def meaning(self, exam: Examination, tally: Tally) -> str:
        seen = exam.memory.get(SEEN, {})
        text = f"{count(seen.get('launches', 0), 'launch')}, {count(seen.get('programs', 0), 'program')}"
        if seen.get("equal"):
            text += f"; equal values written by several programs at {', '.join(sorted(seen['equal'])[:3])}"
        proved = _proofs.words(exam, "races")
        return f"{text}; {proved}" if proved else text

    def claims(self, exam: Examination, tally: Tally) -> tuple[Claim, ...]:
        seen = exam.memory.get(SEEN, {})
        if not seen.get("launches") or tally.silent:
            return ()
        how = "atomics excepted" if seen["atomics"] else "no element shared by two programs, one of them writing"
        strength = f"all programs of {count(seen['launches'], 'launch')} at {count(tally.cases, 'size')}; {how}"
        proved = _proofs.claim(exam, "races", "race-free", f"{how}, of any two programs")
        domain = "sampled sizes and indices, any order of programs"
        return (*proved, Claim(kind="race-free", domain=domain, strength=strength))


WORDS = {
    "write/write": (
        "{a} and {b} both write element {at} of '{x}' with different values",
        "one program writes each element",
    ),
    "read/write": (
        "{a} and {b} use element {at} of '{x}', one reading and one writing it",
        "no program reads what another writes",
    ),
    "atomic/write": (
        "{a} and {b} use element {at} of '{x}', one by an atomic and one by a plain store",
        "atomics only, or one program only",
    ),
    "atomic/read": (
        "{a} and {b} use element {at} of '{x}', one by an atomic and one by a plain load",
        "atomics only, or one program only",
    ),
}


def _late(launch: dict[str, Any]) -> set[str]:
    """Arguments that every program stores to after its last atomic, so that no program can know of it."""
    lines = set(launch.get("unreleased", ()))
    return {a["argument"] for a in launch["accesses"] if a["kind"] == "store" and a["where"] in lines}


def _check(launch: dict[str, Any], race: dict[str, Any]) -> Check:
    a, b = ("another program" if p < 0 else f"program {p}" for p in race["programs"])
    words, expected = WORDS[race["kind"]]
    what = words.format(a=a, b=b, at=race["offset"], x=race["argument"])
    return Check(
        cls="wrong",
        summary=f"{race['kind']} race in {launch['function']}: {what}",
        where=race["where"],
        expected=expected,
        got=f"{count(race['count'], 'element')} of '{race['argument']}' shared: the result may depend on "
        "which program comes first",
    )


GATE = Races()
