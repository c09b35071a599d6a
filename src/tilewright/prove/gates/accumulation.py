"""Accumulation: long sums stay within what honest float32 addition does (float64 for float64), in any order.

The dims along which something is summed are made long, and the values hard: all positive (no error cancels), halves
that cancel up to a small rest, a large mean. The budget allows a chain of additions one after another (the inputs
move by the rounding of the running sum, ``Examination._nudge``), so that a plain loop passes and an accumulator in
half precision, or a variance as a difference of squares, does not. It proves nothing beyond the lengths tried, and a
loss of precision in single products hides in long sums (gate ``values`` sees it). Sources: float16 accumulators
(onnxruntime#29611, FlagGems#4237), a chunked gradient summed in bfloat16 (Liger-Kernel#512); N. Higham, Accuracy and
Stability of Numerical Algorithms (2002), ch. 4.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from ...task.tensors import FLOATS, TensorSpec
from .. import sizes
from ..case import Case, Recipe
from ..gate import Check, Gate, Tally
from ..sizes import Dims
from ..special import STRUCTURED, dims_of
from ..verdict import Role
from ._patience import patient, seconds

if TYPE_CHECKING:
    from ..examination import Examination

SIDE = 16
BUDGET = 1 << 16
MODEST = 1000
EXPENSIVE_S = 0.5
DIMS = 2


class Accumulation(Gate):
    name = "accumulation"
    proves = "long sums as exact as float32 addition in any order"
    plain = True

    def role(self, exam: Examination) -> Role:
        return "deciding"

    def absent(self, exam: Examination) -> str:
        if not any(isinstance(s, TensorSpec) and s.dtypes[0] in FLOATS for s in exam.sheet.inputs.values()):
            return "no input is a float tensor"
        return "" if summed(exam) else "no dim of the task can grow"

    def cases(self, exam: Examination) -> Iterable[Case]:
        return patient(exam, _recipes(exam), essential=3, share=0.1)

    def check(self, exam: Examination, case: Case) -> Check:
        result = exam.result(case)
        if result.failed:
            dim = case.recipe.family.partition("@")[2]
            result.summary = f"along {dim}={case.dims.get(dim, 0)}: {result.summary}"
        return result

    def meaning(self, exam: Examination, tally: Tally) -> str:
        return f"{super().meaning(exam, tally)}, along {', '.join(n for n, _ in summed(exam))}"


def summed(exam: Examination) -> list[tuple[str, Dims]]:
    """Dims that are likely summed along, with the sizes at which they are long: those that no output has, then those of
    an input's last axis."""
    sheet = exam.sheet
    kept = {d for s in (sheet.outputs or {}).values() for d in dims_of(s)}
    inner = {d for s in sheet.inputs.values() if isinstance(s, TensorSpec) and s.shape for d in dims_of(_last(s))}
    likely = [n for n in sheet.dims if n not in kept] + [n for n in sheet.dims if n in kept and n in inner]
    found = []
    for name in likely:
        budget = BUDGET
        long = sizes.longest(sheet, _sides(exam, name), name, budget)
        while long is not None and seconds(exam, long) > EXPENSIVE_S and budget > BUDGET // 16:
            budget //= 2
            long = sizes.longest(sheet, _sides(exam, name), name, budget)
        if long is not None and long[name] > exam.workload().dims.get(name, 0) // 2 and long[name] >= 64:
            found.append((name, long))
    return found[:DIMS]


def _last(spec: TensorSpec) -> TensorSpec:
    return spec.model_copy(update={"shape": spec.shape[-1:]})


def _sides(exam: Examination, name: str) -> Dims:
    """The other dims at sizes that give some dozens of outputs, so that the budget rests on more than one number; the
    dim itself as small as it gets."""
    dims = sizes.least(exam.sheet, exam.workload().dims)
    for other in exam.sheet.dims:
        size = sizes.near(exam.sheet.dims[other], SIDE)
        if other != name and size and size > dims[other] and sizes.legal(exam.sheet, trial := {**dims, other: size}):
            dims = trial if sizes.elements(exam.sheet, trial) <= BUDGET // 256 else dims
    return dims


def _recipes(exam: Examination) -> Iterator[Recipe]:
    first = exam.workload()
    places = [(long, dtype) for dtype in exam.dtypes() for long in summed(exam)]
    for (name, long), dtype in places:
        if dtype == exam.dtypes()[0] or name == places[0][0][0]:
            for family in STRUCTURED:
                dims, chain = long, name
                if family == "large mean":  # a chain's allowance would swallow what this shows
                    size = sizes.near(exam.sheet.dims[name], min(MODEST, long[name]))
                    dims, chain = sizes.put(exam.sheet, long, name, size or long[name]) or long, ""
                w = first.model_copy(update={"dims": dims, "dtype": dtype})
                yield Recipe(w, family=f"special:{family}@{name}", extra=(("chain", chain),),
                             seed=exam.seed_for("accumulation", name, family, dtype))  # fmt: skip


GATE = Accumulation()
