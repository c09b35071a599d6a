"""Device agreement: what the device computes and what the evaluation without one computes are both right.

Where one is right and the other is not, the kernel is not the suspect: the evaluator, the compiler or the card is. That is
a result of its own; it is never averaged away, and the verdict stays incomplete until it is understood. Where both are
right their results may differ by rounding, and by how much is said.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import torch

from .. import sizes
from ..case import Case, Recipe
from ..child.session import Outcome
from ..gate import Check, Gate, Tally
from ..verdict import Claim, Role
from ._device import NEEDS
from ._patience import patient

if TYPE_CHECKING:
    from ..examination import Examination

MOST = 6
BUDGET = 8192
SEEN = "device agreement"


class DeviceAgreement(Gate):
    name = "device agreement"
    proves = "the device and the evaluation without one agree"
    shrinks = False

    def role(self, exam: Examination) -> Role:
        return "core" if exam.place is not None and exam.kernel.language == "triton" else "advisory"

    def absent(self, exam: Examination) -> str:
        if exam.kernel.language != "triton":
            return "only Triton kernels are evaluated without a GPU"
        return "" if exam.place is not None else NEEDS

    def cases(self, exam: Examination) -> Iterable[Case]:
        exam.memory[SEEN] = {"worst": 0.0, "same": 0}
        first = exam.workload()
        planned = sizes.plan(exam.sheet, first.dims, hints=sizes.constants(exam.kernel.text), most=MOST, budget=BUDGET)
        dtypes = exam.dtypes()
        recipes = [Recipe(first.model_copy(update={"dims": d, "dtype": dtypes[i % len(dtypes)]}),
                          seed=exam.seed_for("device agreement", i))
                   for i, d in enumerate([first.dims, *(s.dims for s in planned)])]  # fmt: skip
        return patient(exam, recipes, essential=3, share=0.2)

    def check(self, exam: Examination, case: Case) -> Check:
        there, here = exam.run(case), exam.twin.run(case)  # type: ignore[attr-defined]
        on_device, evaluated = exam.judge(case, there), exam.judge(case, here)
        if on_device.skipped:
            return Check(skipped=on_device.skipped)
        if evaluated.silent:
            exam.memory.setdefault(SEEN, {})["unevaluated"] = evaluated.silent
            return Check()
        if on_device.failed != evaluated.failed:
            right, wrong, bad = ("here", "on the device", on_device) if on_device.failed else (
                "on the device", "where it is evaluated", evaluated)  # fmt: skip
            suspects = "the evaluator, the compiler or the device"
            return Check(
                silent=f"right {right} and wrong {wrong}, so {suspects} is at fault: {bad.summary} (at {case})"
            )
        _note(exam, there, here)
        return Check()

    def meaning(self, exam: Examination, tally: Tally) -> str:
        seen = exam.memory.get(SEEN, {})
        same = f"{seen.get('same', 0)} of {tally.cases} calls bit for bit"
        if seen.get("unevaluated"):
            return f"not compared: {seen['unevaluated']}"
        return f"{same}, largest difference {seen['worst']:.2g} of the largest value" if seen.get("worst") else same

    def claims(self, exam: Examination, tally: Tally) -> tuple[Claim, ...]:
        if exam.memory.get(SEEN, {}).get("unevaluated"):
            return ()
        return (Claim(kind="device", domain=f"{tally.cases} sizes", strength="device and evaluation both right"),)


def _note(exam: Examination, there: Outcome, here: Outcome) -> None:
    """How far two right results are apart."""
    seen = exam.memory.setdefault(SEEN, {"worst": 0.0, "same": 0})
    worst = max((distance(y, here.outputs.get(n)) for n, y in there.outputs.items()), default=0.0)
    seen["worst"] = max(seen["worst"], worst)
    seen["same"] += worst == 0.0


def distance(a: torch.Tensor, b: torch.Tensor | None) -> float:
    """Largest difference of two outputs over the largest finite value; not finite elements are left out."""
    if b is None or a.shape != b.shape or not a.numel():
        return 0.0
    x, y = a.double().flatten(), b.double().flatten()
    fine = torch.isfinite(x) & torch.isfinite(y)
    if not bool(fine.any()):
        return 0.0
    return float((x - y)[fine].abs().max()) / max(float(x[fine].abs().max()), 1e-300)


GATE = DeviceAgreement()
