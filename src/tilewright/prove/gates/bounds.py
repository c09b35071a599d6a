"""Bounds: every access of every launch stays within its storage, also at sizes that no machine here could hold.

Three kinds of cases. *Sampled* sizes are evaluated whole: every program, every access. *Beyond memory*: the candidate's
Python runs on tensors that have the contract's largest sizes (as far as inputs and outputs fit the target's memory) and
no data; each launch is evaluated for a sample of its programs with integers that wrap as on the device, so that a
32-bit offset which overflows above 2**31 elements leaves its storage, and a grid that no GPU takes is refused. From a
failing size the gate goes down to the smallest that still fails.

*All sizes at once*: the same launches with symbolic sizes and program ids, put to a solver (``_proofs.py``); its
counterexamples are run like any other case.

Beyond memory, indices that are inputs take both ends of their promised range; other values that decide an address are
taken as 0, and then a fault says nothing (``inconclusive``) and a pass says less. Sources: 32-bit offsets in
pytorch#136150 and triton#1058, a grid axis above 65535 (flashinfer#4534).
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from .. import sizes
from ..case import Case, Recipe
from ..child.session import Outcome
from ..gate import Check, Gate, Tally
from ..verdict import Claim, Role
from . import _proofs
from ._beyond import MEMORY, points
from ._launches import absent, computed, count, outcome_of, plain, sampled
from ._virtual import call

if TYPE_CHECKING:
    from ..examination import Examination

SEEN = "bounds"
DESCENT_S = 6.0


class Bounds(Gate):
    name = "bounds"
    proves = "every access is within its storage, up to the contract's largest sizes"

    def role(self, exam: Examination) -> Role:
        return "deciding"

    def absent(self, exam: Examination) -> str:
        return absent(exam)

    def cases(self, exam: Examination) -> Iterable[Case]:
        exam.memory[SEEN] = _nothing()
        yield from sampled(exam)
        yield from self._beyond(exam)
        yield from _proofs.ask(exam, "bounds")

    def _beyond(self, exam: Examination) -> Iterator[Case]:
        first = exam.workload()
        dtype = min(exam.dtypes(), key=lambda d: sizes.nbytes(exam.sheet, first.dims, d))
        seen = exam.memory[SEEN]
        for i, dims in enumerate(points(exam, dtype)):
            for turned in (False, True) if i == 0 and exam.contract.layouts == "promised" else (False,):
                if seen["stop"]:
                    return
                w = first.model_copy(update={"dims": dims, "dtype": dtype})
                recipe = Recipe(
                    w,
                    layout="transposed" if turned else "contiguous",
                    seed=exam.seed_for("bounds", i),
                    extra=(("beyond", True),),
                )
                yield Case(recipe, {})

    def check(self, exam: Examination, case: Case) -> Check:
        if case.recipe.options().get("beyond"):
            return self._far(exam, case)
        outcome = outcome_of(exam, case)
        if (bad := exam.trouble(outcome)) is not None:
            return Check(silent=bad.silent) if bad.silent else Check(skipped=bad.summary)
        launches = computed(outcome)
        if not launches:
            return Check(skipped="no launch")
        seen = exam.memory.setdefault(SEEN, _nothing())
        for launch in launches:
            if launch["faults"]:
                return _fault(launch, launch["faults"][0], "")
            seen["programs"] += launch["programs"]
            seen["accesses"] |= {(a["where"], a["kind"]) for a in launch["accesses"]}
        seen["sampled"] += 1
        return Check()

    def _far(self, exam: Examination, case: Case) -> Check:
        seen = exam.memory.setdefault(SEEN, _nothing())
        outcome = far(exam, case)
        for launch in outcome.launches:
            if launch.get("grid_fault"):
                return Check(
                    cls="wrong",
                    summary=f"a GPU refuses the launch of {launch['function']}: {launch['grid_fault']}",
                    where=launch["where"],
                    expected="x up to 2147483647, y and z up to 65535 programs",
                    got=f"grid {tuple(launch['grid'])}",
                )
            if launch.get("faults") and not launch["guessed"]:
                return _fault(launch, launch["faults"][0], _with(launch))
            if launch.get("faults"):
                names = ", ".join(f"'{n}'" for n in launch["guessed"])
                return Check(
                    silent=f"beyond memory: what {launch['function']} reads from {names} decides its addresses, and "
                    "isn't known there"
                )
        if outcome.trouble is not None:
            seen["not reached"] = _words(outcome)
            seen["stop"] = (
                outcome.trouble.kind != "launch"
            )  # what needs data or time here needs it at the next size too
            return Check(skipped=seen["not reached"])
        if not outcome.launches:
            return Check(skipped="no launch")
        seen["guessed"] |= {n for launch in outcome.launches for n in launch.get("guessed", ())}
        seen["beyond"].append(dict(case.dims))
        seen["far programs"] += sum(launch.get("programs", 0) for launch in outcome.launches)
        return Check()

    def _one(self, exam: Examination, case: Case, tally: Tally, role: Role) -> None:
        self.shrinks = not case.recipe.options().get("beyond")
        if not self.shrinks:
            result = self.check(exam, case)
            if result.failed:
                case, _ = self._descend(exam, case, result)
        super()._one(exam, case, tally, role)

    def _descend(self, exam: Examination, case: Case, shown: Check) -> tuple[Case, Check]:
        """The smallest sizes that still fail, one dim after another, by bisection."""
        until = time.monotonic() + DESCENT_S
        for name in case.dims:
            low, high = 0, case.dims[name]
            while high - low > 1 and time.monotonic() < until:
                middle = (low + high) // 2
                size = sizes.near(exam.sheet.dims[name], middle) if name in exam.sheet.dims else None
                dims = {**case.dims, name: size or 0}
                if not size or size >= high or not sizes.legal(exam.sheet, dims):
                    low = middle
                    continue
                trial = replace(case, recipe=case.recipe.at(dims))
                result = self.check(exam, trial)
                if result.failed and result.cls == shown.cls:
                    case, shown, high = trial, result, size
                else:
                    low = middle
        return case, shown

    def meaning(self, exam: Examination, tally: Tally) -> str:
        seen = exam.memory.get(SEEN, _nothing())
        near = f"{count(seen['programs'], 'program')} at {count(seen['sampled'], 'size')}"
        if seen["beyond"]:
            near += f"; {count(seen['far programs'], 'program')} beyond memory, up to {_largest(seen['beyond'])}"
        elif seen["not reached"]:
            near += f"; beyond memory: {seen['not reached']}"
        proved = _proofs.words(exam, "bounds")
        return f"{near}; {proved}" if proved else near

    def claims(self, exam: Examination, tally: Tally) -> tuple[Claim, ...]:
        seen = exam.memory.get(SEEN, _nothing())
        if not seen["sampled"]:
            return ()
        domain, strength = "sampled sizes", f"every access of {count(seen['programs'], 'program')}"
        if seen["beyond"]:
            domain += f" and up to {_largest(seen['beyond'])}"
            strength += f"; there, corner and random programs ({seen['far programs']})"
        if seen["guessed"]:
            strength += f", with what {', '.join(sorted(seen['guessed']))} hold taken as 0"
        proved = _proofs.claim(exam, "bounds", "bounds", "every access of every program is within its storage")
        return (*proved, Claim(kind="bounds", domain=domain, strength=strength))


def far(exam: Examination, case: Case) -> Outcome:
    """The call of a case at sizes beyond memory."""
    w, turned = case.recipe.workload, case.recipe.layout == "transposed"
    programs = list(case.recipe.options().get("programs", ()))
    dtype = w.dtype or exam.dtypes()[0]
    return call(exam, case.dims, dtype, turned=turned, seed=case.recipe.seed % (1 << 31), programs=programs)


def _words(outcome: Outcome) -> str:
    """Why nothing is known beyond memory."""
    assert outcome.trouble is not None
    text = outcome.trouble.message.splitlines()[0] if outcome.trouble.message else outcome.trouble.kind
    if "meta" in text or outcome.trouble.type == "NotImplementedError":
        return f"the launcher needs values of a tensor (at {outcome.trouble.where.rpartition('/')[2]})"
    return text


def _with(launch: dict[str, Any]) -> str:
    fills = launch.get("fills") or {}
    return "".join(f", with '{n}' holding {v}" for n, v in fills.items())


def _fault(launch: dict[str, Any], fault: dict[str, Any], how: str) -> Check:
    verb = {"load": "reads", "store": "writes", "atomic": "updates"}[fault["kind"]]
    side = "before the start" if fault["offset"] < 0 else "past the end"
    summary = (
        f"{launch['function']} {verb} {side} of '{fault['argument']}': element {fault['offset']} of {fault['size']}"
    )
    wrapped = ""
    if fault["offset"] < 0 and fault["offset"] >= -(2**31) and fault["size"] > 2**31:
        summary += f", a 32-bit offset that wrapped (it should be {fault['offset'] + 2**32})"
        wrapped = "; compute offsets in 64 bits: tl.program_id(0).to(tl.int64)"
    return Check(
        cls="wrong",
        summary=f"{summary}, program {tuple(fault['program'])}{how}",
        where=fault["where"],
        expected=f"elements 0 to {fault['size'] - 1}{wrapped}",
        got=f"element {fault['offset']}",
        detail=plain(fault["text"]),
    )


def _largest(beyond: list[dict[str, int]]) -> str:
    """The largest sizes reached, for people."""
    names = beyond[0]
    return ", ".join(f"{n}={max(d[n] for d in beyond)}" for n in names) + f" (within {MEMORY >> 30} GiB)"


def _nothing() -> dict[str, Any]:
    return {
        "programs": 0,
        "sampled": 0,
        "accesses": set(),
        "beyond": [],
        "far programs": 0,
        "guessed": set(),
        "not reached": "",
        "stop": False,
    }


GATE = Bounds()
