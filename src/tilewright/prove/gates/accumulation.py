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

from ...errors import TaskError
from ...task.tensors import FLOATS, TensorSpec
from .. import sizes
from ..case import Case, Recipe
from ..gate import Check, Gate, Tally
from ..sizes import Dims
from ..special import STRUCTURED
from ..verdict import Role

if TYPE_CHECKING:
    from ..examination import Examination

SIDE = 16
BUDGET = 1 << 18
MODEST = 1000
DIMS = 2


class Accumulation(Gate):
    name = "accumulation"
    proves = "long sums as exact as float32 addition in any order"

    def role(self, exam: Examination) -> Role:
        return "deciding"

    def absent(self, exam: Examination) -> str:
        if not any(isinstance(s, TensorSpec) and s.dtypes[0] in FLOATS for s in exam.sheet.inputs.values()):
            return "no input is a float tensor"
        return "" if summed(exam) else "no dim of the task can grow"

    def cases(self, exam: Examination) -> Iterable[Case]:
        for recipe in _recipes(exam):
            try:
                yield exam.make(recipe)
            except TaskError:  # the reference can't be built at this size
                continue

    def check(self, exam: Examination, case: Case) -> Check:
        result = exam.judge(case, exam.run(case))
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
    outputs = " ".join(str(e) for s in (sheet.outputs or {}).values() for e in s.shape)
    specs = [s for s in sheet.inputs.values() if isinstance(s, TensorSpec) and s.shape]
    inner = " ".join(str(s.shape[-1]) for s in specs)
    named = {n: (sheet.outputs is None or not _in(n, outputs), _in(n, inner)) for n in sheet.dims}
    likely = sorted((n for n in sheet.dims if any(named[n])), key=lambda n: (not named[n][0], not named[n][1]))
    found = []
    for name in likely:
        long = sizes.longest(sheet, _sides(exam, name), name, BUDGET)
        if long is not None and long[name] > exam.workload().dims.get(name, 0) // 2 and long[name] >= 64:
            found.append((name, long))
    return found[:DIMS]


def _in(dim: str, entries: str) -> bool:
    return dim in entries.replace("*", " ").replace("+", " ").replace("//", " ").replace("-", " ").split()


def _sides(exam: Examination, name: str) -> Dims:
    """The other dims at sizes that give some dozens of outputs, so that the budget rests on more than one number; the
    dim itself as small as it gets."""
    dims = sizes.least(exam.sheet, exam.workload().dims)
    for other in exam.sheet.dims:
        size = sizes.near(exam.sheet.dims[other], SIDE)
        if other != name and size and size > dims[other] and sizes.legal(exam.sheet, trial := {**dims, other: size}):
            dims = trial if sizes.elements(exam.sheet, trial) <= BUDGET // 1024 else dims
    return dims


def _recipes(exam: Examination) -> Iterator[Recipe]:
    first = exam.workload()
    for i, (name, long) in enumerate(summed(exam)):
        for dtype in exam.dtypes() if i == 0 else exam.dtypes()[:1]:
            for family in STRUCTURED:
                dims, chain = long, name
                if family == "large mean":  # a chain's allowance would swallow what this shows
                    size = sizes.near(exam.sheet.dims[name], min(MODEST, long[name]))
                    dims, chain = sizes.put(exam.sheet, long, name, size or long[name]) or long, ""
                w = first.model_copy(update={"dims": dims, "dtype": dtype})
                yield Recipe(w, family=f"special:{family}@{name}", extra=(("chain", chain),),
                             seed=exam.seed_for("accumulation", name, family, dtype))  # fmt: skip


GATE = Accumulation()
