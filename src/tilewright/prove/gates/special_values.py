"""Special values: NaN, infinities, signed zeros, extremes and subnormals in the inputs lead to what they lead to in
the reference.

NaN, +Inf, -Inf and finite results are told apart element by element, following the contract's policy on NaN:
``propagate`` compares all; ``ignore`` does not look where the reference is NaN; ``unspecified`` tries no NaN and asks
only for a result. Where the reference's own precision overflows (it and the float64 oracle disagree in kind, or by
half) nothing is held against the kernel. Flushing subnormal inputs to zero passes, and so does the other sign of a
zero; both are noted. It proves nothing about values between those. Sources: maxima that swallow NaN (triton#1566,
#7349), rows of -Inf that give exp(-Inf + Inf) (TensorRT-LLM#17477), IEEE 754.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import torch

from ...task.tensors import FLOATS, TensorSpec
from .. import compare, sizes
from ..case import Case, Recipe
from ..child.session import Outcome
from ..examination import Truth
from ..gate import Check, Gate, Tally
from ..special import SPECIALS
from ..verdict import Role
from ._patience import patient

if TYPE_CHECKING:
    from ..examination import Examination

ALONE = ("nan", "-inf", "inf", "-inf row", "nan row")
NOT_A_NUMBER = ("nan", "nan row")
AT_MOST = 4096
GIVEN_AT_MOST = 1 << 18
AT_GIVEN = ("-inf prefix", "-inf", "nan", "inf")
ESSENTIAL = 18


class SpecialValues(Gate):
    name = "special values"
    proves = "NaN, infinities, signed zeros, extremes and subnormals as in the reference"
    plain = True

    def role(self, exam: Examination) -> Role:
        return "deciding" if exam.contract.special_values == "promised" else "advisory"

    def absent(self, exam: Examination) -> str:
        if exam.contract.special_values == "excluded":
            return "the contract excludes special values"
        return "" if _floats(exam) else "no input is a float tensor"

    def cases(self, exam: Examination) -> Iterable[Case]:
        return patient(exam, _recipes(exam), essential=ESSENTIAL, share=0.1)

    def check(self, exam: Examination, case: Case) -> Check:
        exam.ahead(case)
        outcome = exam.run(case)
        truth = exam.truth(case)
        if truth.refused is not None:
            return Check(skipped=f"the reference refuses: {truth.refused.message}")
        promised = exam.contract.special_values == "promised"
        result = exam.trouble(outcome) or exam.form(truth, outcome) or _judge(exam, case, truth, outcome)
        if result.failed and case.recipe.family == "special:subnormal" and _flushes(exam, case, outcome):
            _note(exam, "subnormal inputs are flushed to zero")
            return Check()
        if result.failed and not promised:
            if result.got == "raises":
                return Check(refusal=f"{result.summary} (at {case})")
            result.cls = "policy"
        return result

    def meaning(self, exam: Examination, tally: Tally) -> str:
        notes = exam.memory.get(self.name, [])
        return "; ".join([super().meaning(exam, tally), *notes])


def _floats(exam: Examination) -> list[str]:
    return [n for n, s in exam.sheet.inputs.items() if isinstance(s, TensorSpec) and s.dtypes[0] in FLOATS]


def _recipes(exam: Examination) -> Iterator[Recipe]:
    """Each special value in all inputs, then in each input alone; the given size (if small), and one off the tiles.

    A given size that is large gets a few: long rows are often done in a loop that no small size reaches.
    """
    first = exam.workload()
    places = [s.dims for s in sizes.plan(exam.sheet, first.dims, most=2, budget=AT_MOST)]
    if sizes.elements(exam.sheet, first.dims) <= AT_MOST or not places:
        places.insert(0, first.dims)
    names = [n for n in SPECIALS if not (n in NOT_A_NUMBER and exam.contract.nan == "unspecified")]
    floats, dtypes = _floats(exam), exam.dtypes()
    if AT_MOST < sizes.elements(exam.sheet, first.dims) <= GIVEN_AT_MOST:
        yield from (Recipe(first, family=f"special:{n}", seed=exam.seed_for("special values", n, "given"))
                    for n in AT_GIVEN if n in names)  # fmt: skip
    for i, dims in enumerate(places[:2]):
        for j, name in enumerate(names):
            w = first.model_copy(update={"dims": dims, "dtype": dtypes[0] if i == 0 else dtypes[j % len(dtypes)]})
            seed = exam.seed_for("special values", name, i)
            if len(floats) > 1 and name in ALONE:
                for only in floats:
                    yield Recipe(w, family=f"special:{name}", seed=seed, extra=(("plant", only),))
            if len(floats) == 1 or name not in ALONE or i:
                yield Recipe(w, family=f"special:{name}", seed=seed)


def _judge(exam: Examination, case: Case, truth: Truth, outcome: Outcome) -> Check:
    """The comparer's word on the elements that the policy holds the kernel to."""
    outputs, held, signs = {}, 0, 0
    for name, y in outcome.outputs.items():
        oracle = truth.oracle[name]
        model = oracle.to(y.dtype) if truth.baseline is None else truth.baseline[name]
        free = _free(exam, case, oracle, model)
        outputs[name] = torch.where(free, model, y)
        held += int((~free).sum())
        signs += compare.negative_zeros(y, model) if case.recipe.family in ("special:-0", "special:zeros") else 0
    if not held and outputs:
        return Check(skipped="the contract leaves every element of this case open")
    if signs:
        _note(exam, "the sign of a zero differs")
    return exam.values(case, truth, replace(outcome, outputs=outputs))


def _free(exam: Examination, case: Case, oracle: torch.Tensor, model: torch.Tensor) -> torch.Tensor:
    """Elements that say nothing about the kernel."""
    policy = exam.contract.nan
    nan_given = any(t.is_floating_point() and bool(t.isnan().any()) for t in case.tensors.values())
    if policy == "unspecified" and nan_given:
        return torch.ones(oracle.shape, dtype=torch.bool)
    if not oracle.is_floating_point():
        return torch.zeros(oracle.shape, dtype=torch.bool)
    low = model.double()
    free = compare.classify(low) != compare.classify(oracle.to(model.dtype).double())
    free |= ((low - oracle).abs() > 0.5 * oracle.abs()) & (oracle.abs() > torch.finfo(model.dtype).smallest_normal)
    return free | low.isnan() if policy != "propagate" else free


def _flushes(exam: Examination, case: Case, outcome: Outcome) -> bool:
    """Whether the outcome is right for the same inputs with subnormal numbers set to zero."""
    flushed = {}
    for n, t in case.tensors.items():
        if t.is_floating_point():
            flushed[n] = torch.where(t.abs() < torch.finfo(t.dtype).smallest_normal, torch.zeros_like(t), t)
    zeroed = case.with_inputs(**flushed)
    return outcome.ok and not exam.judge(zeroed, outcome).failed


def _note(exam: Examination, words: str) -> None:
    notes = exam.memory.setdefault("special values", [])
    if words not in notes:
        notes.append(words)


GATE = SpecialValues()
