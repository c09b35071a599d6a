"""Strides: the same values in other memory layouts give a right result, or a clear refusal where the contract
promises no more.

Each layout of ``prove/layouts.py`` (transposed, a block of a wider tensor, every second element, unaligned, expanded,
column-major) is given to each input alone and to all together; the memory around a view is full of NaN. An unaligned
input follows an aligned one in the same process, since a kernel specialised on alignment may be kept. It proves
nothing about layouts outside that list, nor about those of incoming gradients (gate ``gradients``). A kernel in C
takes contiguous buffers by its calling convention. Sources: inputs read as if contiguous (fused-ssim#44, aiter#5292),
a stride used in one pass and dropped in the next (LightLLM#1467), alignment specialisation (triton#1330), size-1 and
expanded axes (triton#1175).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch

from ...task.tensors import TensorSpec
from .. import sizes
from ..case import Case, Recipe
from ..child.session import Outcome
from ..gate import Check, Gate
from ..layouts import LAYOUTS, MIXED
from ..verdict import Role
from ._patience import patient

if TYPE_CHECKING:
    from ..examination import Examination

BUDGET = 2048
MIXES = 3
LOUD = ("exception", "interface", "launch")


class Strides(Gate):
    name = "strides"
    proves = "right on transposed, sliced, stepped, unaligned and expanded inputs"

    def role(self, exam: Examination) -> Role:
        return "deciding" if exam.contract.layouts == "promised" else "advisory"

    def absent(self, exam: Examination) -> str:
        if exam.kernel.raw:
            return "kernels in C take contiguous buffers"
        if exam.contract.layouts == "excluded":
            return "the contract excludes inputs that are not contiguous"
        if not _free(exam):
            return "no input may have another layout"
        return ""

    def cases(self, exam: Examination) -> Iterable[Case]:
        for case in patient(exam, _recipes(exam), essential=len(LAYOUTS) + MIXES + 1, share=0.1):
            if any(_strided(t) for t in case.tensors.values()):
                yield case

    def check(self, exam: Examination, case: Case) -> Check:
        if not any(_strided(t) for t in case.tensors.values()):  # a layout that vanishes at these sizes
            return Check(skipped="nothing is strided")
        exam.run(_aligned(case))  # what a kernel specialises on alignment is made now
        outcome = exam.run(case)
        promised = exam.contract.layouts == "promised"
        if not promised and (words := refusal(outcome)):
            return Check(skipped="refused too") if exam.truth(case).refused is not None else Check(refusal=words)
        result = exam.judge(case, outcome)
        if result.failed:
            result.summary = f"{_words(case)}: {result.summary}"
            if not promised:
                result.cls = "policy"
        return result


def _free(exam: Examination) -> list[str]:
    return [
        n for n, s in exam.sheet.inputs.items() if isinstance(s, TensorSpec) and s.layouts != "contiguous" and s.shape
    ]


def _recipes(exam: Examination) -> Iterator[Recipe]:
    """All inputs in one layout; each in another one; each input alone; all at a second size."""
    first = exam.workload()
    planned = sizes.plan(exam.sheet, first.dims, most=2, budget=BUDGET)
    places = [s.dims for s in planned] or [first.dims]
    free = _free(exam)
    mutated = any(isinstance(s, TensorSpec) and s.mutated for s in exam.sheet.inputs.values())
    layouts = [n for n in LAYOUTS if not (mutated and n == "expanded")]  # writing to overlapping memory is undefined
    for i, dims in enumerate(places):
        plan: list[tuple[str, tuple[tuple[str, Any], ...]]] = [(layout, ()) for layout in layouts]
        if len(free) > 1 and i == 0:
            if not mutated:
                plan += [(MIXED, (("turn", turn),)) for turn in range(MIXES)]
            plan += [(layout, (("only", name),)) for layout in layouts for name in free]
        for layout, extra in plan:
            dtype = exam.dtypes()[(len(layout) + i) % len(exam.dtypes())]
            w = first.model_copy(update={"dims": dims, "dtype": dtype})
            yield Recipe(w, layout=layout, seed=exam.seed_for("strides", layout, extra, i), extra=extra)


def _strided(t: torch.Tensor) -> bool:
    return not t.is_contiguous() or t.storage_offset() != 0


def _aligned(case: Case) -> Case:
    """The same values, contiguous and aligned."""
    return replace(case, inputs={n: v.contiguous().clone() if isinstance(v, torch.Tensor) else v
                                 for n, v in case.inputs.items()})  # fmt: skip


def refusal(outcome: Outcome) -> str:
    """The words of a kernel that raises rather than guess."""
    t = outcome.trouble
    return str(t) if t is not None and t.kind in LOUD and t.type != "Unsupported" and t.kind != "unsupported" else ""


def _words(case: Case) -> str:
    strided = {n: t for n, t in case.tensors.items() if _strided(t)}
    parts = [f"'{n}' {case.recipe.layout} (strides {tuple(t.stride())}, offset {t.storage_offset()})"
             for n, t in strided.items()]  # fmt: skip
    return ", ".join(parts[:3])


GATE = Strides()
