"""Device configurations: a tuned kernel is right on the device with each configuration, alone in a fresh process, and on
its first call, where the tuner runs them all on the caller's memory.

Which one wins is the clock's choice on the user's card. Unlike the evaluation without a GPU, warps and stages count
here: each configuration is another binary. One that the device refuses for lack of resources is skipped, as the
tuner skips it. Sources: triton#9230 (a partial write masked by another configuration's full one), #6547, #781.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from ..case import Case
from ..gate import Check, Gate, Tally
from ..verdict import Claim, Role
from ._device import absent, given
from .configurations import _at, _told

if TYPE_CHECKING:
    from ..examination import Examination

MOST = 24
TUNED = "configurations on the device"
RESOURCES = ("out of resource", "OutOfResources", "too many resources")


class DeviceConfigurations(Gate):
    name = "device configurations"
    proves = "right on the device with each configuration that a tuner may choose"
    shrinks = False

    def role(self, exam: Examination) -> Role:
        return "deciding"

    def absent(self, exam: Examination) -> str:
        if exam.kernel.language != "triton":
            return "only Triton kernels are tuned"
        return absent(exam) or ("" if _tuned(exam) else "no kernel is tuned")

    def cases(self, exam: Examination) -> Iterable[Case]:
        case = given(exam, "device configurations")
        for config in range(min(_most(exam), MOST)):
            yield _at(case, config=config)
        yield _at(case, tune=True)

    def check(self, exam: Examination, case: Case) -> Check:
        options = case.recipe.options()
        config, tune = int(options.get("config", 0)), bool(options.get("tune"))
        outcome = exam.run(case, config=config, tune=tune, fresh=True)
        if outcome.trouble is not None and any(
            w in f"{outcome.trouble.type} {outcome.trouble.message}" for w in RESOURCES
        ):
            return Check(skipped="does not fit the device")
        return _told(exam.judge(case, outcome), replace(outcome, tuned=outcome.tuned or _tuned(exam)), config, tune)

    def meaning(self, exam: Examination, tally: Tally) -> str:
        fit = f", {tally.skipped} that don't fit" if tally.skipped else ""
        tried = f"{min(_most(exam), MOST)} of {_most(exam)} configurations"
        return f"{tried}, each in a fresh process{fit}, and a first call with tuning"

    def claims(self, exam: Examination, tally: Tally) -> tuple[Claim, ...]:
        if _most(exam) > MOST or tally.cut:
            return ()
        domain = f"all {_most(exam)} configurations of the tuner"
        return (Claim(kind="device", domain=domain, strength="each alone in a fresh process at the given workload"),)


def _most(exam: Examination) -> int:
    return max((len(c) for c in _tuned(exam).values()), default=0)


def _tuned(exam: Examination) -> dict[str, list[list[str]]]:
    if TUNED not in exam.memory:
        exam.memory[TUNED] = exam.run(given(exam, "device configurations"), fresh=True).tuned
    return dict(exam.memory[TUNED])


GATE = DeviceConfigurations()
