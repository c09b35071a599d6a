"""Coverage: every element of every output is written, and by whom: one program once, or several, or atomics.

The evaluator keeps for each launch which elements of which storage it wrote. An output that launches fill must be
filled whole: an element that no launch wrote and that changes with the bytes that fresh memory happens to hold was
never written (gate ``written`` finds those on its own cases; here the evaluator's record names the launch). An output
that torch filled, wholly or before the launch, is no fault. Elements that one program writes several times, or several
with equal bits, are counted. Beside the sampled sizes, all sizes at once are put to a solver (``_proofs.py``).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import torch

from ..case import Case
from ..child.footprint import MASKED, unpack
from ..child.session import Outcome, same_bits
from ..child.watch import FINITE_BYTE
from ..compare import position
from ..gate import Check, Gate, Tally
from ..verdict import Claim, Role
from . import _proofs
from ._launches import absent, computed, count, outcome_of, sampled

if TYPE_CHECKING:
    from ..examination import Examination

SEEN = "coverage"


class Coverage(Gate):
    name = "coverage"
    proves = "each output element is written by one program, or by atomics"

    def role(self, exam: Examination) -> Role:
        return "deciding"

    def absent(self, exam: Examination) -> str:
        return absent(exam)

    def cases(self, exam: Examination) -> Iterable[Case]:
        exam.memory[SEEN] = _nothing()
        yield from (c for c in sampled(exam) if not c.recipe.grad)
        yield from _proofs.ask(exam, "coverage")

    def check(self, exam: Examination, case: Case) -> Check:
        outcome = outcome_of(exam, case)
        if (bad := exam.trouble(outcome)) is not None:
            return Check(silent=bad.silent) if bad.silent else Check(skipped=bad.summary)
        seen = exam.memory.setdefault(SEEN, _nothing())
        launches = computed(outcome)
        partial = {}
        for name, place in outcome.places.items():
            written = written_of(launches, place)
            if written is None:
                continue
            seen["outputs"].add(name)
            seen["elements"] += written.numel()
            seen["filled"] += int(written.sum())
            if not bool(written.all()):
                partial[name] = written
        seen["shared"] += sum(w["shared"] for n in launches for w in n["writes"].values())
        seen["atomic"] += sum(w["atomic"] for n in launches for w in n["writes"].values())
        return _unwritten(exam, case, outcome, partial) if partial else Check()

    def meaning(self, exam: Examination, tally: Tally) -> str:
        seen = exam.memory.get(SEEN, _nothing())
        if not seen["outputs"]:
            return "outputs are made by torch from what the launches wrote"
        text = f"{count(seen['elements'], 'output element')} looked at"
        if seen["filled"] < seen["elements"]:
            text += f", {seen['elements'] - seen['filled']} of them not by launches"
        text += f"; {seen['shared']} written by several programs with equal values" if seen["shared"] else ""
        proved = _proofs.words(exam, "coverage")
        return f"{text}; {proved}" if proved else text

    def claims(self, exam: Examination, tally: Tally) -> tuple[Claim, ...]:
        seen = exam.memory.get(SEEN, _nothing())
        if not seen["outputs"] or seen["filled"] < seen["elements"]:
            return ()
        how = (
            "by atomics"
            if seen["atomic"]
            else "by several programs with equal values"
            if seen["shared"]
            else "by one program"
        )
        strength = f"{count(seen['elements'], 'output element')} at {count(tally.cases, 'size')}, each written {how}"
        what = "every element of what the launches fill is written"
        proved = _proofs.claim(exam, "coverage", "coverage", what)
        domain = "outputs that launches write, at sampled sizes"
        return (*proved, Claim(kind="coverage", domain=domain, strength=strength))


def _nothing() -> dict[str, Any]:
    return {"outputs": set(), "elements": 0, "filled": 0, "shared": 0, "atomic": 0}


def written_of(launches: list[dict[str, Any]], place: Any) -> torch.Tensor | None:
    """Which elements of an output the launches wrote, in its shape; None where no launch wrote its storage."""
    try:
        storage, offset, shape, strides = place
        found: torch.Tensor | None = None
        for n in launches:
            for name, w in n["writes"].items():
                if n["storages"].get(name) != storage or (w["written"] < w["size"] and "mask" not in w):
                    continue
                if w["size"] > MASKED:
                    return None
                mask = unpack(w["mask"], w["size"]) if "mask" in w else torch.ones(w["size"], dtype=torch.bool)
                found = mask if found is None or len(found) != len(mask) else found | mask
        return None if found is None else found.as_strided(shape, strides, offset).clone()
    except (TypeError, ValueError, RuntimeError):  # the child's word on where outputs lie makes no sense
        return None


def _unwritten(exam: Examination, case: Case, outcome: Outcome, partial: dict[str, torch.Tensor]) -> Check:
    """Elements that no launch wrote: a fault where they hold what fresh memory held."""
    outcome = outcome if outcome.outputs else exam.run(case)
    again = exam.run(case, poison=FINITE_BYTE)
    for name, written in partial.items():
        a, b = outcome.outputs.get(name), again.outputs.get(name)
        if a is None or b is None or a.shape != b.shape or same_bits(a, b) or a.shape != written.shape:
            continue
        raw = [t.contiguous().reshape(-1).view(torch.uint8).view(t.numel(), -1) for t in (a, b)]
        bare = (raw[0] != raw[1]).any(1) & ~written.reshape(-1)
        if bool(bare.any()):
            at = list(position(int(bare.nonzero()[0]), a.shape))
            return Check(
                cls="wrong",
                summary=f"{int(bare.sum())} of {a.numel()} elements of '{name}' are written by no launch, first {at}",
                where=f"{name}{at}",
                expected="every element written",
                got="whatever was in memory",
            )
    return Check()


GATE = Coverage()
