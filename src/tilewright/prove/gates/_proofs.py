"""What a gate asks about all sizes at once: the questions, the replay of counterexamples, and the words of the claim.

A counterexample of the solver is a case like any other: the gate's own check runs it on the concrete machinery, and only
what that finds is a finding. A counterexample that doesn't show there, and a question that the solver didn't settle, are
told, and then only the concrete sizes are claimed.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from .. import sizes
from ..case import Case, Recipe
from ..verdict import Claim
from . import _symbolic
from ._beyond import MEMORY
from ._launches import plain
from ._symbolic import Group, in_order, symbolic

if TYPE_CHECKING:
    from ..examination import Examination

WHOLE = 1 << 20  # elements of the largest tensor up to which a counterexample is evaluated whole


@dataclass
class Proof:
    """Groups of launches for which a question was answered with yes, and why not for others, by group."""

    proved: list[Group] = field(default_factory=list)
    left: dict[str, str] = field(default_factory=dict)
    skipped: list[str] = field(default_factory=list)
    reason: str = ""


def ask(exam: Examination, question: str) -> Iterator[Case]:
    """Asks ``bounds``, ``races`` or ``coverage`` about each group; gives counterexamples as cases to be replayed."""
    proof = exam.memory[_key(question)] = Proof()
    found = symbolic(exam)
    if found.reason:
        proof.reason = found.reason
        return
    started = time.monotonic()
    for i, group in enumerate(in_order(found)):
        spent = time.monotonic() - started
        if i and spent > _symbolic.MORE_S:
            proof.skipped.append(group.label)
            continue
        yield from _one(exam, question, group, proof, _symbolic.SECONDS - (spent if i else 0.0))


def _one(exam: Examination, question: str, group: Group, proof: Proof, seconds: float) -> Iterator[Case]:
    answer = _symbolic.ask(exam, group, question, seconds)
    if "trouble" in answer:
        proof.left[group.label] = plain(answer["trouble"])
        return
    if question == "coverage" and not answer["proved"] and not answer["left"]:
        proof.left[group.label] = "it fills no storage of its own by plain stores"
    elif not answer["shown"] and not answer["left"]:
        proof.proved.append(group)
    for shown in answer["shown"]:
        at = _at(shown["sizes"])
        proof.left[group.label] = f"a counterexample ({at})"
        yield from _replay(exam, question, shown)  # if it shows, the gate stops here
        what = "programs meet, and nothing shows" if question == "races" else "a counterexample shows nothing"
        proof.left[group.label] = f"{what} when it is run ({at})"
    for why in answer["left"][:1]:
        proof.left[group.label] = why


def _replay(exam: Examination, question: str, shown: dict[str, Any]) -> Iterator[Case]:
    """The case of a counterexample: evaluated whole where it is small, else the programs that it names."""
    dims = {**exam.workload().dims, **shown["sizes"]}
    if not sizes.legal(exam.sheet, dims):
        return
    w = exam.workload().model_copy(update={"dims": dims})
    if sizes.elements(exam.sheet, dims) <= WHOLE:
        yield exam.make(Recipe(w, seed=exam.seed_for(question, "counterexample", str(dims))))
    elif question == "bounds":
        x, y, _ = shown["grid"]
        ids = tuple(p[0] + x * (p[1] + y * p[2]) for p in shown["programs"])
        extra = (("beyond", True), ("programs", ids))
        yield Case(Recipe(w, seed=exam.seed_for(question, "counterexample"), extra=extra), {})


def _key(question: str) -> str:
    return f"proof of {question}"


def _at(dims: dict[str, int]) -> str:
    return ", ".join(f"{n}={v}" for n, v in dims.items())


def words(exam: Examination, question: str) -> str:
    """What was proved for all sizes, or why not, for the table."""
    proof: Proof | None = exam.memory.get(_key(question))
    if proof is None:
        return ""
    if proof.reason:
        return f"all sizes: not asked, {proof.reason}"
    kinds = len(proof.proved) + len(proof.left) + len(proof.skipped)
    what = "launch" if kinds == 1 else f"{len(proof.proved)} of {kinds} kinds of launches"
    if len(proof.proved) == kinds:
        return "all sizes: proved" + (" for the launches that were seen" if symbolic(exam).cut else "")
    why = next(iter(proof.left.values()), "no time for more")
    return f"all sizes: {f'proved for {what}; else ' if proof.proved else 'not proved, '}{why}"


def claim(exam: Examination, question: str, kind: Any, what: str) -> tuple[Claim, ...]:
    """The claim for all sizes, with the constants that it is limited to; none where nothing was proved."""
    proof: Proof | None = exam.memory.get(_key(question))
    if proof is None or not proof.proved:
        return ()
    domain = every(exam, proof)
    if proof.left or proof.skipped or symbolic(exam).cut:
        domain += ", in launches of " + "; ".join(sorted({g.label for g in proof.proved}))
    strength = f"{what}; by z3, with the launches that the launcher makes (seen at {symbolic(exam).calls} sizes)"
    return (Claim(kind=kind, domain=domain, strength=strength),)


def every(exam: Examination, proof: Proof) -> str:
    """``every M in 1..64, N in 1..4096; contiguous inputs``."""
    ranges = [f"{n} in {d.low}..{d.high}" if d.sizes is None else f"{n} in {', '.join(map(str, d.sizes))}"
              for n, d in exam.sheet.dims.items()]  # fmt: skip
    top = {n: max(d.sizes) if d.sizes else d.high for n, d in exam.sheet.dims.items()}
    room = f" (within {MEMORY >> 30} GiB)" if sizes.nbytes(exam.sheet, top) > MEMORY else ""
    return f"every {', '.join(ranges)}{room}; contiguous inputs"
