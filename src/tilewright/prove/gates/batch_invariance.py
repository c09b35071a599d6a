"""Batch invariance: along the dims that the contract names, what a row gives does not depend on the rows beside it, bit
for bit. Row i alone, and the first part of the batch, give what they give in the whole batch.

It proves nothing about batches larger than the given one, nor on a GPU where the library picks another algorithm by
size. Sources: batch_invariant_ops #6 and "Defeating nondeterminism in LLM inference" (Thinking Machines, 2025),
TransformerEngine #2986, FlashMLA #212.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

import torch

from ...errors import TaskError
from ...task.tensors import TensorSpec
from .. import sizes
from ..case import Case, Recipe
from ..child.session import same_bits
from ..gate import Check, Gate, Tally
from ..verdict import Claim, Role

if TYPE_CHECKING:
    from ..examination import Examination


class BatchInvariance(Gate):
    name = "batch invariance"
    proves = "a row gives the same bits alone as in the batch"

    def role(self, exam: Examination) -> Role:
        return "deciding"

    def absent(self, exam: Examination) -> str:
        if not exam.contract.batch_invariant:
            return "the contract names no batch dim"
        return "results are random by contract" if exam.contract.random else ""

    def cases(self, exam: Examination) -> Iterable[Case]:
        first = exam.workload()
        for dim in exam.contract.batch_invariant:
            for dtype in exam.dtypes():
                small = {**sizes.small(exam.sheet, first.dims), dim: first.dims.get(dim, 1)}
                for dims in (first.dims, small):
                    w = first.model_copy(update={"dims": dims, "dtype": dtype})
                    yield exam.make(Recipe(w, seed=exam.seed_for("batch", dim, dtype), extra=(("dim", dim),)))

    def check(self, exam: Examination, case: Case) -> Check:
        dim = case.recipe.options().get("dim", exam.contract.batch_invariant[0])
        size = case.dims.get(dim, 0)
        if size < 2:
            return Check(skipped="no batch")
        whole = exam.run(case)
        if (bad := exam.trouble(whole)) is not None:
            return Check(skipped="the reference refuses") if exam.truth(case).refused is not None else bad
        tried = False
        for start, stop in parts(size):
            part = sliced(exam, case, dim, start, stop)
            if part is None:
                continue
            alone, tried = exam.run(part), True
            if (bad := exam.trouble(alone)) is not None:
                return bad
            for name, y in whole.outputs.items():
                found = unlike(y, alone.outputs[name], size, start, stop)
                if found is not None:
                    return replace(found, where=name, summary=f"'{name}' {found.summary.format(dim=dim)}")
        return Check() if tried else Check(skipped=f"no smaller {dim} is legal")

    def claims(self, exam: Examination, tally: Tally) -> tuple[Claim, ...]:
        dims = ", ".join(exam.contract.batch_invariant)
        return (Claim(kind="sampled", domain=f"batch dims {dims}", strength="rows alone and prefixes, bit for bit"),)


def parts(size: int) -> list[tuple[int, int]]:
    """Rows alone (first, middle, last), prefixes and a suffix."""
    found = [(0, 1), (size // 2, size // 2 + 1), (size - 1, size), (0, max(size // 2, 1)), (0, size - 1), (1, size)]
    return list(dict.fromkeys(p for p in found if 0 < p[1] - p[0] < size))


def axis_of(spec: TensorSpec, dim: str) -> int | None:
    """Where a dim stands in a tensor's shape."""
    return next((i for i, s in enumerate(spec.shape) if s == dim), None)


def sliced(exam: Examination, case: Case, dim: str, start: int, stop: int) -> Case | None:
    """The case with only the rows ``start`` to ``stop`` of the batch; None where that size is not legal."""
    dims = {**case.dims, dim: stop - start}
    if not sizes.legal(exam.sheet, dims):
        return None
    try:
        small = exam.make(case.recipe.at(dims))
    except TaskError:
        return None
    changed = {}
    for name, x in case.tensors.items():
        spec = exam.sheet.inputs.get(name)
        axis = axis_of(spec, dim) if isinstance(spec, TensorSpec) else None
        changed[name] = x if axis is None else x.narrow(axis, start, stop - start).contiguous()
    return replace(small, inputs={**case.inputs, **changed}, changed=True)


def unlike(y: torch.Tensor, z: torch.Tensor, size: int, start: int, stop: int) -> Check | None:
    """Whether ``z`` is not, bit for bit, rows ``start`` to ``stop`` of ``y`` along the axis in which they differ."""
    axis = next(
        (i for i, (a, b) in enumerate(zip(y.shape, z.shape, strict=False)) if a == size and b == stop - start), None
    )
    if axis is None:
        return None  # an output without the batch axis
    own = y.narrow(axis, start, stop - start)
    if same_bits(own, z):
        return None
    what = (
        f"row {start} alone differs from row {start} in"
        if stop - start == 1
        else f"rows {start} to {stop - 1} differ from"
    )
    bad = (own != z) & ~((own != own) & (z != z))
    at = tuple(bad.nonzero()[0].tolist()) if bool(bad.any()) else ()
    return Check(
        cls="policy",
        summary=f"{what} the batch of {size} along {{dim}}: {int(bad.sum())} of {z.numel()} elements",
        expected=f"{own[at].item():.9g}" if at else "the same bits",
        got=f"{z[at].item():.9g}" if at else "others",
    )


GATE = BatchInvariance()
