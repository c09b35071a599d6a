"""Shapes: at other sizes than the given ones, within the contract's range, the outputs are within the error budget.

It tries one element, tile edges, primes, exchanged and random sizes, sizes around the integers of the kernel's
source, each promised scalar, hostile values at sizes off a tile, nothing at all where the contract promises empty
inputs, and more programs than a grid axis holds where that is cheap. It proves nothing about sizes between those, nor
about offsets beyond what memory here holds (gate ``bounds``). A size that the reference refuses is not held against
the kernel. Sources: unmasked tails (triton#630), padding lanes that enter a variance (triton PR 344), a grid axis
above 65535 (flashinfer#4534), specialised branches that hidden sizes reveal.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from ...task.task import Workload
from ...task.tensors import Scalar
from .. import sizes
from ..case import Case, Recipe
from ..gate import Check, Gate, Tally
from ..sizes import Sizing
from ..truth import LONG
from ..verdict import Claim, Role
from ._patience import note_cost, patient, seconds
from ._range import overflow

if TYPE_CHECKING:
    from ..examination import Examination

MOST = 48
ESSENTIAL = 48
HOSTILE = {"far_negative": 3, "all_negative": 3, "shifted_100": 3, "large": 3, "deep": 2, "deep_rows": 2, "opposed": 5}
"""Families and at how many sizes each is tried; the signs of ``opposed`` are opposed in half of the draws."""
EXPENSIVE_S = 1.5
TRIED = "largest sizes tried"


class Shapes(Gate):
    name = "shapes"
    proves = "right at tile edges, odd, tiny, long and (if promised) empty sizes"
    plain = True

    def role(self, exam: Examination) -> Role:
        return "core"

    def absent(self, exam: Examination) -> str:
        scalars = any(isinstance(s, Scalar) and len(s.values) > 1 for s in exam.sheet.inputs.values())
        if not exam.sheet.dims and not scalars and len(exam.sheet.workloads) < 2:
            return "the task has one shape"
        return ""

    def cases(self, exam: Examination) -> Iterable[Case]:
        return patient(exam, self._recipes(exam), essential=ESSENTIAL, share=0.2)

    def _recipes(self, exam: Examination) -> Iterator[Recipe]:
        first = exam.workload()
        start = first.dims
        planned = sizes.plan(exam.sheet, start, hints=sizes.constants(exam.kernel.text), most=MOST,
                             seed=exam.seed_for("sizes"))  # fmt: skip
        dtypes = _sharpest_first(exam.dtypes())
        empty = sizes.empties(exam.sheet, start, beyond=exam.contract.inferred)
        recipes = [_recipe(exam, first, s, _turn(dtypes, i)) for i, s in enumerate(planned)]
        yield from recipes[:8]
        yield from _given(exam, first)
        if exam.contract.empty == "promised":
            yield from (_recipe(exam, first, s, dtypes[0]) for s in empty)
        yield from recipes[8:20]
        for family, count in HOSTILE.items():
            for s in planned[:count]:
                yield _recipe(exam, first, s, dtypes[0], family=family)
        for s in sizes.extremes(exam.sheet, start):
            if seconds(exam, s.dims) < EXPENSIVE_S:
                yield _recipe(exam, first, s, dtypes[0])
        yield from recipes[20:]

    def check(self, exam: Examination, case: Case) -> Check:
        if words := overflow(exam, case):
            return Check(skipped=words)
        exam.ahead(case)
        outcome = exam.run(case)
        note_cost(exam, case, outcome.seconds)
        result = exam.judge(case, outcome)
        if not (result.failed or result.skipped or result.silent):
            note_tried(exam, case)
        return result

    def meaning(self, exam: Examination, tally: Tally) -> str:
        refused = f", {tally.skipped} beyond the reference" if tally.skipped else ""
        return super().meaning(exam, tally) + refused

    def claims(self, exam: Examination, tally: Tally) -> tuple[Claim, ...]:
        if not tally.cases:
            return ()
        tried = exam.memory.get(TRIED, {})
        largest = ", ".join(f"{n}={size}" for n, size in tried.items())
        strength = f"{tally.cases} sizes against float64, worst {tally.worst:.2g} of the budget"
        return (
            Claim(kind="sampled", domain=f"tried up to {largest}" if largest else "the given shape", strength=strength),
        )


def note_tried(exam: Examination, case: Case) -> None:
    """Remember the largest size of each dim at which the kernel was right."""
    tried: dict[str, int] = exam.memory.setdefault(TRIED, {})
    for name, size in case.dims.items():
        tried[name] = max(size, tried.get(name, 0))


def _recipe(exam: Examination, first: Workload, s: Sizing, dtype: str, family: str = "natural") -> Recipe:
    w = first.model_copy(update={"dims": s.dims, "dtype": dtype})
    long = max(s.dims, key=lambda n: s.dims[n], default="")
    extra: tuple[tuple[str, Any], ...] = (("chain", long),) if long and s.dims[long] >= LONG else ()
    return Recipe(w, family=family, seed=exam.seed_for("shapes", s.key(), dtype, family), extra=extra)


def _given(exam: Examination, first: Workload) -> Iterator[Recipe]:
    """The task's other workloads, if they are small enough to run here, and each promised scalar alone."""
    for w in exam.workloads()[1:]:
        if sizes.nbytes(exam.sheet, w.dims) <= 16 << 20:
            w = w if w.dtype else w.model_copy(update={"dtype": first.dtype})
            yield Recipe(w, seed=exam.seed_for("shapes", str(w)))
    for name, spec in exam.sheet.inputs.items():
        if isinstance(spec, Scalar):
            for value in spec.values[1:]:
                w = first.model_copy(update={"scalars": {**first.scalars, name: value}})
                yield Recipe(w, seed=exam.seed_for("shapes", name, value))


def _sharpest_first(dtypes: tuple[str, ...]) -> list[str]:
    """Dtypes by how fine a fault they show: wide mantissas first."""
    digits = {"float64": 53, "float32": 24, "float16": 11, "bfloat16": 8}
    return sorted(dtypes, key=lambda d: -digits.get(d, 0))


def _turn(dtypes: list[str], i: int) -> str:
    """Two of three cases in the first dtype, the third in the others by turns."""
    return dtypes[0] if i % 3 or len(dtypes) == 1 else dtypes[1 + i // 3 % (len(dtypes) - 1)]


GATE = Shapes()
