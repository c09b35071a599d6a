"""Configurations: a tuned kernel is right with each configuration that the tuner may choose, and on its first call.

Which configuration wins is decided by the clock of the user's machine, so each is run alone, from memory that nobody
wrote, and judged: values, accesses out of range, races. Where gradients are promised, a backward pass is among
the cases. Configurations that differ in warps and stages only are the
same program here and share one run. Then the kernel is called as on a device for the first time: each configuration
runs more than once on the caller's own memory, with the tuner's hooks; what accumulates or works in place and is not
named in ``reset_to_zero`` or ``restore_value`` comes out wrong in that call alone. Sources: triton#6547, #781, #5339,
lion-pytorch#36.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..case import Case
from ..child.session import Outcome
from ..gate import Check, Gate, Tally
from ..verdict import Claim, Role
from ._launches import absent, called, computed, count, plain, sampled

if TYPE_CHECKING:
    from ..examination import Examination

SHAPES = 3
TUNED = "tuned functions"
MOST = 48


class Configurations(Gate):
    name = "configurations"
    proves = "right with each configuration that a tuner may choose, and on the first call, which tries them all"

    def role(self, exam: Examination) -> Role:
        return "deciding"

    def absent(self, exam: Examination) -> str:
        if reason := absent(exam):
            return reason
        return "" if _tuned(exam) else "no kernel is tuned"

    def cases(self, exam: Examination) -> Iterable[Case]:
        chosen = distinct(_tuned(exam))
        shapes = _shapes(exam)
        for config in chosen[:MOST]:
            for case in shapes:
                yield _at(case, config=config)
        for case in shapes[:2]:
            yield _at(case, tune=True)

    def check(self, exam: Examination, case: Case) -> Check:
        options = case.recipe.options()
        config, tune = int(options.get("config", 0)), bool(options.get("tune"))
        # Fresh: libraries keep the configuration of a first call in caches of their own.
        outcome = exam.run(case, config=config, tune=tune, fresh=tune or config > 0)
        for launch in [] if tune else computed(outcome):
            if launch["faults"]:
                return _told(Check(cls="wrong", summary=f"out of bounds: {plain(launch['faults'][0]['text'])}",
                                   where=launch["faults"][0]["where"]), outcome, config, tune)  # fmt: skip
            races = [r for r in launch["races"] if not r["same_value"]]
            if races and not (launch["waits"] or launch["synchronises"]):
                return _told(
                    Check(cls="wrong", summary=plain(races[0]["text"]), where=races[0]["where"]), outcome, config, tune
                )
        return _told(exam.judge(case, outcome), outcome, config, tune)

    def meaning(self, exam: Examination, tally: Tally) -> str:
        tuned = _tuned(exam)
        total = max((len(c) for c in tuned.values()), default=0)
        return f"{count(total, 'configuration')} ({len(distinct(tuned))} that differ in code), first call with tuning"

    def claims(self, exam: Examination, tally: Tally) -> tuple[Claim, ...]:
        tuned = _tuned(exam)
        total = max((len(c) for c in tuned.values()), default=0)
        if len(distinct(tuned)) > MOST or tally.cut:
            return ()
        strength = f"each alone at {count(min(SHAPES, tally.cases), 'size')}, and a first call that tries them all"
        return (Claim(kind="sampled", domain=f"all {count(total, 'configuration')} of the tuner", strength=strength),)


def _at(case: Case, **options: Any) -> Case:
    """The case with options for this gate."""
    return replace(case, recipe=replace(case.recipe, extra=(*case.recipe.extra, *options.items())))


def _tuned(exam: Examination) -> dict[str, list[list[str]]]:
    """By tuned function: each configuration in words, and what of it the code sees. Nothing where the calls of these cases
    were made, and no call of any process asked a tuner."""
    if TUNED not in exam.memory:
        tuned: dict[str, list[list[str]]] = {}
        shapes = _shapes(exam)
        for i, case in enumerate(shapes if exam.tuned or not all(called(exam, c) for c in shapes) else ()):
            tuned |= exam.run(case, fresh=i == 0).tuned  # fresh: a tuner is asked once, and libraries keep its answer
        exam.memory[TUNED] = tuned
    return dict(exam.memory[TUNED])


def _shapes(exam: Examination) -> list[Case]:
    """A backward pass, where gradients are promised, and some forward ones."""
    known = list(sampled(exam))
    return [*[c for c in known if c.recipe.grad][:1], *(c for c in known if not c.recipe.grad)][:SHAPES]


def distinct(tuned: dict[str, list[list[str]]]) -> list[int]:
    """Numbers of configurations, one of each group that is the same code for every tuned function."""
    seen: set[tuple[str, ...]] = set()
    out = []
    for i in range(max((len(c) for c in tuned.values()), default=0)):
        key = tuple(configs[i % len(configs)][1] for configs in tuned.values())
        if key not in seen:
            seen.add(key)
            out.append(i)
    return out


def _told(check: Check, outcome: Outcome, config: int, tune: bool) -> Check:
    """The check with the configuration in its words."""
    if not check.failed:
        return check
    if tune:
        check.summary = (
            f"on a first call, where the tuner runs each configuration on the caller's memory: {check.summary}"
        )
        check.detail = (
            "name what the kernel accumulates into in reset_to_zero, what it changes in place in restore_value"
        )
        return check
    words = "; ".join(f"{name}({configs[config % len(configs)][0]})" for name, configs in outcome.tuned.items())
    check.summary = f"with configuration {config}: {check.summary}"
    check.detail = "\n".join(x for x in (f"configuration {config}: {words}", check.detail) if x)
    return check


GATE = Configurations()
