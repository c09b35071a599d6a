"""The calls that gate ``algebra`` traces: at which sizes, and one call of kernel and reference each with its trace."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import torch

from ..errors import Unsupported
from ..task.task import Workload
from ..task.tensors import Scalar, TensorSpec
from . import sizes
from .case import Case, Recipe
from .child.session import Outcome
from .gates.gradients import differentiable
from .replay_trace import TAKEN

if TYPE_CHECKING:
    from .examination import Examination

MOST = 5
LARGEST = 1 << 14


@dataclass
class Traced:
    """One call each. ``branches``: the kernel's path depends on values, so that its steps at other values are
    others."""

    kernel: Outcome
    reference: Outcome
    branches: bool = False

    @property
    def results(self) -> dict[str, Any]:
        """The kernel's results by the names that traces use."""
        return {**self.kernel.outputs, **{f"grad of {n}": g for n, g in self.kernel.grads.items()}}


def traces(exam: Examination, case: Case) -> Traced | None:
    """One call of the kernel and one of the reference; None where a call gives no result. Raises Unsupported where the
    kernel gets numbers in ways that no trace shows: numpy, Python's own arithmetic, results kept from before."""
    mutated = tuple(n for n, s in exam.sheet.inputs.items() if isinstance(s, TensorSpec) and s.mutated)
    outcome = _traced(exam, case, mutated)
    if outcome is None or outcome.trace is None:
        return None
    taken = any(s.get("op", "").partition(".")[2].startswith(TAKEN) for s in outcome.trace["steps"])
    other = _traced(exam, _moved(case), mutated)
    if other is not None and not _alike(other, outcome):  # a first call may tune; the next one is steady
        outcome = _traced(exam, case, mutated) or outcome
    unlike = other is not None and not _alike(other, outcome)
    if unlike and not taken:
        raise Unsupported("a call that makes its data outside of what is traced")
    grads: dict[str, Any] = {}
    if case.recipe.grad:
        grads = {"requires_grad": case.recipe.wanted, "cotangents": case.cotangents}
    reference = exam.reference.run(
        case.inputs, case.recipe.workload, state=case.state, trace=True, mutated=mutated,
        seed=case.recipe.seed % (1 << 31), **grads,
    )  # fmt: skip
    if not reference.ok or reference.trace is None:
        return None
    return Traced(outcome, reference, branches=unlike)


def _traced(exam: Examination, case: Case, mutated: tuple[str, ...]) -> Outcome | None:
    """A call with its trace, which must tell of the launches that were evaluated."""
    outcome = exam.run(case, trace=True, mutated=mutated)
    if not outcome.ok or outcome.trace is None:
        if outcome.trouble is not None and outcome.trouble.kind == "unsupported":
            raise Unsupported(outcome.trouble.message, where=outcome.trouble.where or None)
        return None
    told = [s["launch"].get("function") for s in outcome.trace["steps"] if "launch" in s]
    if told != [n.get("function") for n in outcome.launches]:
        raise Unsupported("a trace whose launches are not those that were evaluated")
    return outcome


def _moved(case: Case) -> Case:
    """The same call on other floats."""
    moved = {n: t + torch.sign(t) * 0.25 + 0.125 if t.is_floating_point() else t for n, t in case.tensors.items()}
    return replace(case, inputs={**case.inputs, **moved}, changed=True)


def _alike(a: Outcome, b: Outcome) -> bool:
    """Whether two calls took the same steps with the same numbers."""
    return a.trace is not None and b.trace is not None and all(a.trace[p] == b.trace[p] for p in ("steps", "captured"))


def with_parameters(exam: Examination, case: Case) -> Case:
    """A module's parameters become inputs, so that they are symbols like any other."""
    if case.calling.style != "module":
        return case
    own = {
        f"state.{n}": t.clone() for n, t in case.state.items() if t.is_floating_point() and not n.startswith("init.")
    }
    return replace(case, inputs={**case.inputs, **own})


def recipes(exam: Examination) -> Iterator[Recipe]:
    """Small telling sizes: two tiles and a rest, each scalar, just off tiles, the given ones; gradients among them."""
    first = exam.workload()
    dtype = "float32" if "float32" in exam.dtypes() else exam.dtypes()[0]
    first = first.model_copy(update={"dtype": dtype if first.dtype in exam.dtypes() else first.dtype})
    if not exam.sheet.dims:
        chosen = [first, *_scalars(exam, first)]
    else:
        planned = sizes.plan(exam.sheet, first.dims, hints=sizes.constants(exam.kernel.text), most=6, budget=LARGEST,
                             seed=exam.seed_for("algebra sizes"))  # fmt: skip
        given = [first.dims] if sizes.elements(exam.sheet, first.dims) <= LARGEST else []
        base = first.model_copy(update={"dims": _spread(exam, first)})
        others = [*[s.dims for s in planned[:1]], *given, *[s.dims for s in planned[1:]]]
        chosen = [base, *_scalars(exam, base), *[first.model_copy(update={"dims": d}) for d in others]]
    plain = [Recipe(w, seed=exam.seed_for("algebra", i)) for i, w in enumerate(chosen[:MOST])]
    yield from plain[:2]
    if exam.contract.gradients == "promised":
        yield from _backward(exam, chosen[:1])
    yield from plain[2:]


def _spread(exam: Examination, first: Workload) -> dict[str, int]:
    """Two tiles and an odd rest along every dim that is not small, as far as the budget goes: loops turn more than
    once, and no size divides a tile."""
    tiles = [n for n in sizes.constants(exam.kernel.text) if 8 <= n <= 128 and n & (n - 1) == 0]
    wanted = 2 * (max(tiles) if tiles else 32) + 5
    dims = sizes.small(exam.sheet, first.dims)
    for i, name in enumerate(sorted(exam.sheet.dims, key=lambda n: -first.dims[n])):
        for size in (wanted + 4 * i, 37 + 4 * i, 19 + 4 * i) if first.dims[name] >= 16 else ():
            near = sizes.near(exam.sheet.dims[name], size)
            moved = sizes.put(exam.sheet, dims, name, near) if near else None
            if moved is not None and sizes.elements(exam.sheet, moved) <= LARGEST:
                dims = moved
                break
    return dims


def _scalars(exam: Examination, base: Workload) -> Iterator[Workload]:
    """Each further value of each scalar, and the scalars of the task's other workloads."""
    seen = {repr(base.scalars)}
    others = [{**base.scalars, n: v} for n, spec in exam.sheet.inputs.items() if isinstance(spec, Scalar)
              for v in spec.values[1:]]  # fmt: skip
    for scalars in [*others, *(w.scalars for w in exam.sheet.workloads)]:
        if repr(scalars) not in seen and len(seen) <= 3:
            seen.add(repr(scalars))
            yield base.model_copy(update={"scalars": scalars})


def _backward(exam: Examination, workloads: list[Workload]) -> Iterator[Recipe]:
    for w in workloads:
        recipe = Recipe(w, seed=exam.seed_for("algebra backward"))
        names = differentiable(exam, recipe)
        if names:
            yield replace(recipe, grad=True, wanted=names)
