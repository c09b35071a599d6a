"""Gradients: for random incoming gradients, what backward gives is within the error budget of float64 autograd.

Every input that may require a gradient is tried alone, with all others, and left out; incoming gradients also come
uniform, expanded from a scalar, transposed, sliced with NaN around, and zero; backward runs twice on one graph.
Inputs and incoming gradients must stay as they are. It proves nothing about second derivatives, nor at kinks, where
the reference's own choice is not the only right one. Sources: Liger-Kernel #968, #507, #370; unsloth PR 10617;
FlagGems #2338; flash-attention #355.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from ...task.task import Workload
from ...task.tensors import FLOATS, Scalar, TensorSpec
from .. import sizes
from ..case import Case, Recipe
from ..child.session import Outcome, same_bits
from ..cotangents import COTANGENTS
from ..gate import Check, Gate, Tally
from ..special import dims_of
from ..verdict import Claim, Role
from .purity import overwritten

if TYPE_CHECKING:
    from ..examination import Examination

FAMILIES = ("all_negative", "shifted_100", "large")
MOST_SUBSETS = 10
ROWS, MOST_ELEMENTS = 192, 1 << 14


class Gradients(Gate):
    name = "gradients"
    proves = "backward agrees with float64 autograd for each subset of inputs and each kind of incoming gradient"

    def role(self, exam: Examination) -> Role:
        return "deciding" if exam.contract.gradients == "promised" else "advisory"

    def absent(self, exam: Examination) -> str:
        if exam.contract.gradients == "excluded":
            return "the contract excludes gradients"
        if exam.kernel.raw:
            return "native kernels have no backward"
        return "results are random by contract" if exam.contract.random else ""

    def cases(self, exam: Examination) -> Iterable[Case]:
        for recipe in recipes(exam):
            yield exam.make(recipe)
            if exam.memory.get("gradients") == "none":
                return

    def check(self, exam: Examination, case: Case) -> Check:
        case = with_state(case)
        truth = exam.truth(case)
        if truth.refused is not None:
            return Check(skipped=f"the reference refuses: {truth.refused.message}")
        if not truth.oracle_grads:
            return Check(skipped="the reference gives no gradient")
        outcome = exam.run(case, twice=bool(case.recipe.options().get("twice")))
        lacks = outcome.ok and outcome.requires_grad and not any(outcome.requires_grad.values())
        if lacks and self.role(exam) == "advisory":
            exam.memory["gradients"] = "none"
            return Check(silent="the kernel has no backward: its outputs carry no gradient")
        if lacks:
            return Check(cls="wrong", summary="the outputs carry no gradient", where=", ".join(case.recipe.wanted),
                         expected="outputs that require grad", got="detached outputs")  # fmt: skip
        if not outcome.ok and outcome.trouble is not None and self.role(exam) == "advisory" and not crashed(outcome):
            return Check(refusal=str(outcome.trouble))
        return judged(exam, case, outcome)

    def claims(self, exam: Examination, tally: Tally) -> tuple[Claim, ...]:
        return (
            Claim(
                kind="sampled",
                domain="gradients",
                strength=f"{tally.cases} backward passes against float64, worst {tally.worst:.2g} of the budget",
            ),
        )


def crashed(outcome: Outcome) -> bool:
    return outcome.trouble is not None and outcome.trouble.kind in (
        "crash",
        "timeout",
        "exit",
        "protocol",
        "forged",
        "memory",
    )


def judged(exam: Examination, case: Case, outcome: Outcome) -> Check:
    """Values, gradients, the same of the second backward, and that nothing of the caller's was written."""
    result = exam.judge(case, outcome)
    if result.failed or result.skipped or result.silent:
        return result
    if outcome.cotangents_changed and exam.contract.backward != "in place":
        name = outcome.cotangents_changed[0]
        return Check(cls="wrong", summary=f"backward overwrites the incoming gradient of '{name}'", where=name,
                     expected="incoming gradients unchanged", got="other values")  # fmt: skip
    if (bad := overwritten(exam, case, outcome)) is not None:
        return bad
    if outcome.grads_again and any(not same_bits(g, outcome.grads_again.get(n, g)) for n, g in outcome.grads.items()):
        again = exam.judge(case, replace(outcome, grads=outcome.grads_again))
        if again.failed:
            return replace(again, summary=f"the second backward differs: {again.summary}")
    return result


def recipes(exam: Examination) -> Iterator[Recipe]:
    """Telling ones first: all inputs at small and given sizes, then subsets, kinds of incoming gradients, values."""
    first = exam.workload()
    small = first.model_copy(update={"dims": sizes.small(exam.sheet, first.dims)})
    names = differentiable(exam, (small.dims and Recipe(small)) or Recipe(first))
    if not names:
        return
    seed = exam.seed_for("gradients")
    twice = (("twice", True),) if exam.contract.backward == "repeatable" else ()
    yield Recipe(small, seed=seed, grad=True, wanted=names, extra=twice)
    for w in (first, *workloads(exam, small)):
        yield Recipe(w, seed=seed, grad=True, wanted=names)
    for i, wanted in enumerate(subsets(names)):
        yield Recipe(small, seed=exam.seed_for("gradients", i), grad=True, wanted=wanted)
    for kind in COTANGENTS:
        yield Recipe(small, seed=seed, grad=True, wanted=names, cotangent=kind)
    for s in sizes.plan(exam.sheet, first.dims, most=6, seed=seed):
        yield Recipe(first.model_copy(update={"dims": s.dims}), seed=seed, grad=True, wanted=names)
    for dtype in reversed(exam.dtypes()):  # narrow ones first
        many = small.model_copy(update={"dims": crowded(exam, small.dims), "dtype": dtype})
        yield Recipe(many, family="peaked", seed=exam.seed_for("peaked"), grad=True, wanted=names)
        for family in ("natural", *FAMILIES):
            yield Recipe(small.model_copy(update={"dtype": dtype}), family=family, seed=seed, grad=True, wanted=names)


def crowded(exam: Examination, dims: sizes.Dims) -> sizes.Dims:
    """Many short rows: a budget rests on the errors of elements of like magnitude, so there must be many of each."""
    specs = [s for s in exam.sheet.inputs.values() if isinstance(s, TensorSpec) and s.shape]
    inner = {d for s in specs if s.dtypes[0] in FLOATS for d in dims_of(s.model_copy(update={"shape": s.shape[-1:]}))}
    for name, spec in exam.sheet.dims.items():
        size = sizes.near(spec, 4 if name in inner else ROWS)
        trial = {**dims, name: size or dims[name]}
        if sizes.legal(exam.sheet, trial) and sizes.elements(exam.sheet, trial) <= MOST_ELEMENTS:
            dims = trial
    return dims


def workloads(exam: Examination, small: Workload) -> Iterator[Workload]:
    """The task's other workloads, and each further value of its scalars."""
    for w in exam.workloads()[1:]:
        yield w if w.dtype else w.model_copy(update={"dtype": exam.dtypes()[0]})
    for name, spec in exam.sheet.inputs.items():
        for value in spec.values[1:] if isinstance(spec, Scalar) else ():
            yield small.model_copy(update={"scalars": {**small.scalars, name: value}})


def differentiable(exam: Examination, recipe: Recipe) -> tuple[str, ...]:
    """Inputs that may require a gradient: those that the task marks, else all floats; and a module's parameters."""
    case = exam.make(recipe)
    floats = [n for n, x in case.tensors.items() if x.is_floating_point()]
    marked = [n for n in floats if isinstance(s := exam.sheet.inputs.get(n), TensorSpec) and s.requires_grad]
    own = [f"state.{n}" for n, t in case.state.items() if t.is_floating_point() and not n.startswith("init.")
           and not n.rpartition(".")[2].startswith("running_")]  # fmt: skip
    return tuple((marked or floats) + own)


def subsets(names: tuple[str, ...]) -> list[tuple[str, ...]]:
    """Each name alone, and all but one, at most ``MOST_SUBSETS``."""
    found = [(n,) for n in names] + [tuple(m for m in names if m != n) for n in names]
    return [s for s in dict.fromkeys(found) if s and s != names][:MOST_SUBSETS]


def with_state(case: Case) -> Case:
    """Parameters that are differentiated become inputs, so that gradients reach them."""
    missing = {
        n: case.state[n.removeprefix("state.")].clone()
        for n in case.recipe.wanted
        if n.startswith("state.") and n not in case.inputs and n.removeprefix("state.") in case.state
    }
    return replace(case, inputs={**case.inputs, **missing}) if missing else case


GATE = Gradients()
