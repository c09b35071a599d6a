"""Determinism: the same inputs give the same bits, again in one process, in fresh processes, and (for launches that are
evaluated here) when the programs of a launch run in another order.

It proves nothing about the order that a GPU takes inside one program, nor about another card or driver. Floating-point
atomics and split reductions whose partial results meet in arrival order are what it finds. Sources:
flash-linear-attention #945, spconv #656, "run the same input 20 times" of every hazard list.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import torch

from .. import sizes
from ..case import Case, Recipe
from ..child.session import Outcome, same_bits
from ..gate import Check, Gate, Tally
from ..verdict import Claim, Role
from .gradients import differentiable, with_state

if TYPE_CHECKING:
    from ..examination import Examination

ORDERS = (1, 2)
LONG = 67
MOST_DIMS = 4


class Determinism(Gate):
    name = "determinism"
    proves = "the same inputs give the same bits"

    def role(self, exam: Examination) -> Role:
        return "deciding" if exam.contract.determinism == "bitwise" else "advisory"

    def absent(self, exam: Examination) -> str:
        return "results are random by contract" if exam.contract.random else ""

    def cases(self, exam: Examination) -> Iterable[Case]:
        first = exam.workload()
        small = sizes.small(exam.sheet, first.dims)
        promised = exam.contract.gradients == "promised" and not exam.kernel.raw
        names = differentiable(exam, Recipe(first)) if promised else ()
        for dims in [first.dims, *long(exam, small)]:
            w = first.model_copy(update={"dims": dims})
            yield exam.make(Recipe(w, seed=exam.seed_for("determinism", str(dims)), grad=bool(names), wanted=names))

    def check(self, exam: Examination, case: Case) -> Check:
        case = with_state(case)
        first = exam.run(case)
        if (bad := exam.trouble(first)) is not None:
            return Check(skipped="the reference refuses") if exam.truth(case).refused is not None else bad
        for what, again in repeats(exam, case):
            if not again.ok and what.startswith("with the programs"):
                continue  # programs that wait for each other can't run in any order
            if (bad := exam.trouble(again) or difference(first, again, what)) is not None:
                return bad
        return Check()

    def claims(self, exam: Examination, tally: Tally) -> tuple[Claim, ...]:
        return (
            Claim(
                kind="sampled",
                domain="the given workload",
                strength="same bits in two processes"
                + (" and in 3 orders of the programs" if exam.place is None else ""),
            ),
        )


def long(exam: Examination, small: dict[str, int]) -> list[dict[str, int]]:
    """One dim long, the others small: enough partial results that their order matters."""
    found = [sizes.put(exam.sheet, small, name, LONG) for name in list(exam.sheet.dims)[:MOST_DIMS]]
    return [d for d in found if d is not None]


def repeats(exam: Examination, case: Case) -> Iterator[tuple[str, Outcome]]:
    """The same call again, each time with what is different about it."""
    yield "called again", exam.run(case)
    if exam.kernel.language == "triton" and exam.place is None:
        for order in ORDERS:
            yield "with the programs of each launch in another order", exam.run(case, order=order)
    if case.recipe.workload.dims == exam.workload().dims:
        yield "called in a fresh process", exam.run(case, fresh=True)


def difference(first: Outcome, again: Outcome, what: str) -> Check | None:
    """A Check if any bit of any output differs."""
    both = [(n, y, again.outputs.get(n)) for n, y in first.outputs.items()]
    both += [(n, y, again.inputs_after.get(n)) for n, y in first.inputs_after.items() if n in first.changed]
    both += [(f"grad of {n}", y, again.grads.get(n)) for n, y in first.grads.items()]
    for name, y, z in both:
        if z is None or y.shape != z.shape:
            return Check(cls="policy", summary=f"{what}, '{name}' has another form", where=name)
        if not same_bits(y, z):
            a, b = y.contiguous().reshape(-1), z.contiguous().reshape(-1)
            raw = a.view(torch.uint8).view(a.numel(), -1) != b.view(torch.uint8).view(a.numel(), -1)
            at = int(raw.any(1).nonzero()[0])
            return Check(
                cls="policy",
                summary=f"{what}, '{name}' differs in {int(raw.any(1).sum())} of {a.numel()} elements",
                where=f"{name}[{at}]",
                expected=f"{a[at].item():.9g}",
                got=f"{b[at].item():.9g}",
            )
    return None


GATE = Determinism()
