"""Purity: a call leaves its inputs as they are, returns fresh memory, and depends on nothing but its inputs.

Five episodes. *inputs*: the parent compares the shared memory itself, so an overwritten input can't be hidden; one that
is written and put back shows in a second call, with inputs that can only be read (``_sealed.py``). *calls*:
many calls in one process, all compared with the truth: new values at an old address, old values at a new one, other
values of the same shape, values with an equal fingerprint (same ends, same sum), until a result that is kept by
pointer, shape, content sample or call count must differ. Outputs that the caller still holds must not change.
*orders*: other sizes in shuffled order, there and back, in one process. *parameters*: a module follows weights that
change in place. *state*: where state is the contract (running statistics), it must become what the reference's becomes.

It proves nothing about keys that happen not to collide here, nor about caches that only a longer run fills, nor about an
input that a kernel on a device changes and puts back within one call, nor about bytes that a launch writes as they were.
Sources:
results kept by pointer, shape or content on public leaderboards (reference-kernels #102, #160; flashinfer-bench #414);
inputs overwritten in place (Liger-Kernel #272, unsloth #5002); specialisations kept from an earlier shape
(triton #1330); llm.c #851 (drift after some calls).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import torch

from ...errors import TaskError
from ...task import values
from ...task.tensors import TensorSpec
from .. import compare, sizes
from ..case import Case, Recipe
from ..child.session import Outcome, Trouble, same_bits
from ..gate import Check, Tally
from ..verdict import Claim, Role
from . import _sealed
from ._derived import Dependent

if TYPE_CHECKING:
    from ..examination import Examination

LATER = 7
WIDE = 5
MOVABLE = ("normal", "uniform", "integers", "bool", "custom")


@dataclass
class Step:
    """One call of a sequence: what is new about it, and whether the inputs take the addresses of the step before."""

    label: str
    case: Case
    reuse: bool


class Purity(Dependent):
    name = "purity"
    proves = "inputs unchanged, outputs fresh, nothing kept between calls"

    def role(self, exam: Examination) -> Role:
        return "core"

    def cases(self, exam: Examination) -> Iterable[Case]:
        first = exam.workload()
        for dtype in exam.dtypes():
            w = first.model_copy(update={"dtype": dtype})
            yield exam.make(Recipe(w, seed=exam.seed_for("purity", dtype), extra=(("episode", "inputs"),)))
        small = first.model_copy(update={"dims": sizes.small(exam.sheet, first.dims)})
        for name in exam.sheet.dims:
            wider = sizes.put(exam.sheet, small.dims, name, WIDE)
            small = small.model_copy(update={"dims": wider}) if wider else small
        for episode in ("calls", "orders", "parameters", "state"):
            yield exam.make(Recipe(small, seed=exam.seed_for("purity", episode), extra=(("episode", episode),)))

    def same(self, found: Check, smaller: Check) -> bool:
        """An input that stays changed must not become one that is put back (zeros over zeros)."""
        return super().same(found, smaller) and (PUT_BACK in found.summary) == (PUT_BACK in smaller.summary)

    def look(self, exam: Examination, case: Case) -> Check:
        if exam.truth(case).refused is not None:
            return Check(skipped="the reference refuses")
        episode = case.recipe.options().get("episode", "inputs")
        return _sealed.watched(exam, case, EPISODES[episode], WRITTEN.get(episode, ""))

    def claims(self, exam: Examination, tally: Tally) -> tuple[Claim, ...]:
        return (
            Claim(
                kind="sampled",
                domain="calls in one process",
                strength="inputs unchanged, outputs fresh, results follow the values in every order tried",
            ),
        )


def inputs(exam: Examination, case: Case, frozen: tuple[str, ...]) -> Check:
    """One call: which inputs changed, which outputs share memory with them. Another one with ``frozen`` inputs."""
    outcome = exam.run(case, keep=True)
    if (bad := exam.trouble(outcome)) is not None:
        return bad
    if outcome.odd:
        return Check(silent="the output is no plain tensor")
    bad = overwritten(exam, case, outcome) or aliased(exam, case, outcome)
    return bad or (exam.trouble(exam.run(case, frozen=frozen)) if frozen else None) or Check()


def overwritten(exam: Examination, case: Case, outcome: Outcome) -> Check | None:
    """Inputs that changed though neither the contract nor the reference changes them."""
    truth = exam.truth(case)
    for name in outcome.changed:
        spec = exam.sheet.inputs.get(name)
        if name not in case.tensors or (isinstance(spec, TensorSpec) and spec.mutated):
            continue
        after = truth.baseline_after.get(name)
        if after is not None and not same_bits(after, case.tensors[name]):
            continue
        now, then = outcome.inputs_after[name].flatten(), case.tensors[name].flatten()
        at = int((now != then).nonzero()[0]) if bool((now != then).any()) else 0
        return Check(
            cls="wrong",
            summary=f"input '{name}' is overwritten",
            where=name,
            expected=f"{then[at].item():.6g}",
            got=f"{now[at].item():.6g}",
            detail=f"element {at} of '{name}', in memory order of its shape",
        )
    return None


def aliased(exam: Examination, case: Case, outcome: Outcome) -> Check | None:
    """Outputs in an input's memory, where the reference returns fresh memory and no contract allows it."""
    if exam.contract.aliasing == "allowed":
        return None
    truth = exam.truth(case)
    for out, name in outcome.alias.items():
        spec = exam.sheet.inputs.get(name)
        if out in truth.alias or (isinstance(spec, TensorSpec) and spec.mutated):
            continue
        return Check(cls="policy", summary=f"output '{out}' shares memory with input '{name}'", where=out,
                     expected="fresh memory", got=f"memory of '{name}'")  # fmt: skip
    return None


def calls(exam: Examination, case: Case, frozen: tuple[str, ...]) -> Check:
    """Many calls in one new process."""
    if exam.contract.random:
        return Check(skipped="results are random by contract")
    earlier: list[tuple[Step, Outcome]] = []
    worst = 0.0
    exam.session(fresh=True)
    for step in steps(exam, case):
        outcome = exam.run(step.case, reuse=step.reuse, keep=not step.reuse, rebuild=exam.contract.state, frozen=frozen)
        if outcome.ok and outcome.stale:
            return Check(
                cls="wrong",
                summary="an output that the caller still holds is overwritten by a later call",
                where="out",
                expected="fresh memory in every call",
                got=f"changed in call {len(earlier) + 1}",
            )
        result = exam.judge(step.case, outcome)
        if result.skipped or result.silent:
            return result
        if result.failed:
            return _explain(exam, step, outcome, result, earlier)
        worst = max(worst, result.ratio)
        earlier.append((step, outcome))
    return Check(ratio=worst)


def steps(exam: Examination, case: Case) -> Iterator[Step]:
    """The sequence of ``calls``: some telling steps, then the same cases over and over at old and new addresses."""
    other = exam.make(replace(case.recipe, seed=case.recipe.seed + 1))
    alike = {kind: fingerprint(exam, case, kind) for kind in MOVES}
    yield Step("first call", case, True)
    yield Step("new values at the same address", other, True)
    yield Step("the same values at a new address", case, False)
    for i, (kind, twin) in enumerate(alike.items()):
        if twin is not case:
            yield Step(f"values that a sample can't tell from the first ones ({kind})", twin, i % 2 == 0)
    for i in range(LATER):
        yield Step(f"call {8 + i}", (other, case, alike["inner elements reversed"])[i % 3], i % 2 == 1)


def _inner_rows(x: torch.Tensor) -> None:
    if x.shape[0] > 2 and x.numel():
        x[1:-1] = x[1:-1].flatten().flip(0).view(x[1:-1].shape)


def _inner_columns(x: torch.Tensor) -> None:
    x[..., 1:-1] = x[..., 1:-1].flip(-1)


def _inner_elements(x: torch.Tensor) -> None:
    flat = x.view(-1)
    flat[1:-1] = flat[1:-1].flip(0)


def _all_rows(x: torch.Tensor) -> None:
    x.copy_(x.flip(0))


MOVES: dict[str, Callable[[torch.Tensor], None]] = {
    "inner elements reversed": _inner_elements, "rows but the first and last reversed": _inner_rows,
    "columns but the first and last reversed": _inner_columns, "rows in reverse order": _all_rows,
}  # fmt: skip


def fingerprint(exam: Examination, case: Case, kind: str) -> Case:
    """Other values with the same sum and extremes, and the same ends (of the whole, of the first axis, of each row).
    Inputs whose values have an order (offsets, distributions) stay. The case itself where nothing can move."""
    changed = {}
    for name, x in case.tensors.items():
        spec = exam.sheet.inputs.get(name)
        drawn = spec.values.kind if isinstance(spec, TensorSpec) else "custom"
        if drawn not in MOVABLE or x.dim() == 0 or (drawn == "custom" and not x.is_floating_point()):
            continue
        y = x.contiguous().clone()
        MOVES[kind](y)
        if not torch.equal(x, y):
            changed[name] = y
    return case.with_inputs(**changed) if changed else case


def _explain(
    exam: Examination, step: Step, outcome: Outcome, result: Check, earlier: list[tuple[Step, Outcome]]
) -> Check:
    """A wrong result in a sequence: one that an earlier call gave is a result that was kept."""
    for old, before in earlier:
        if before.outputs and all(
            same_bits(outcome.outputs[n], t) for n, t in before.outputs.items() if n in outcome.outputs
        ):
            return replace(
                result,
                cls="cheat",
                summary=f"the result of an earlier call comes back ({step.label} gives what"
                f" '{old.label}' gave): {result.summary}",
            )
    return replace(result, summary=f"{result.summary} ({step.label}, call {len(earlier) + 1} in one process)")


def orders(exam: Examination, case: Case, frozen: tuple[str, ...]) -> Check:
    """Several sizes, in one order and back, in one new process."""
    if exam.contract.random or not exam.sheet.dims:
        return Check(skipped="nothing to reorder")
    cases = [case]
    for plan in sizes.plan(exam.sheet, case.dims, most=3, seed=case.recipe.seed):
        try:
            made = exam.make(case.recipe.at(plan.dims))
        except TaskError:
            continue
        if exam.truth(made).refused is None:
            cases.append(made)
    order = torch.randperm(len(cases), generator=values.generator(case.recipe.seed)).tolist()
    worst = 0.0
    exam.session(fresh=True)
    for i in (*order, *order[::-1]):
        result = exam.result(cases[i], rebuild=exam.contract.state, frozen=frozen)
        if result.failed:
            return replace(
                result, summary=f"{result.summary} (sizes {cases[i].dims}, in a process that ran other sizes before)"
            )
        worst = max(worst, result.ratio)
    return Check(ratio=worst)


def parameters(exam: Examination, case: Case, frozen: tuple[str, ...]) -> Check:
    """A module is called, its parameters change in place, and it is called again."""
    own = {n: t for n, t in case.state.items() if not n.startswith("init.")}
    if not own or exam.contract.random:
        return Check(skipped="no parameters")
    first = exam.result(case)
    if first.failed:
        return first
    changed = replace(case, state={**case.state, **{n: other_values(t, case.recipe.seed) for n, t in own.items()}})
    if exam.truth(changed).refused is not None:
        return Check(skipped="the reference refuses these parameters")
    done = exam.session().update({n: t for n, t in changed.state.items() if n in own})
    if isinstance(done, Trouble):
        return exam.trouble(Outcome(trouble=done)) or Check()
    if not done:
        return Check(skipped="the kernel is no module")
    result = exam.judge(changed, exam.run(changed, rebuild=False))
    return replace(result, summary=f"parameters that change after the first call are not followed: {result.summary}") \
        if result.failed else result  # fmt: skip


def other_values(t: torch.Tensor, seed: int) -> torch.Tensor:
    """Floats of the same signs and like magnitude, zeros no longer zero; other dtypes as they are."""
    if not t.is_floating_point():
        return t
    r = torch.rand(t.shape, generator=values.generator(seed))
    return torch.where(t == 0, 0.1 * r, t * (0.5 + r)).to(t.dtype)


def state(exam: Examination, case: Case, frozen: tuple[str, ...]) -> Check:
    """State by contract: after a call it is the reference's state."""
    own = {f"state.{n}": t.clone() for n, t in case.state.items() if not n.startswith("init.")}
    if not exam.contract.state or not own:
        return Check(skipped="no state by contract")
    case = case.with_inputs(**own)
    truth, outcome = exam.truth(case), exam.run(case)
    if truth.refused is not None:
        return Check(skipped="the reference refuses its state as an input")
    if (bad := exam.trouble(outcome)) is not None:
        return bad
    for name in own:
        if name not in truth.inputs_after:
            continue
        c = compare.compare(outcome.inputs_after[name], truth.inputs_after[name], truth.baseline_after.get(name),
                            tolerance=exam.contract.tolerance)  # fmt: skip
        if not c.ok:
            return Check(
                cls="wrong",
                summary=f"after the call, {name}{c.summary}",
                where=name,
                expected=c.expected,
                got=c.got,
                error=c.error,
                ratio=c.ratio,
            )
    return Check()


EPISODES: dict[str, _sealed.Episode] = {
    "inputs": inputs, "calls": calls, "orders": orders, "parameters": parameters, "state": state,
}  # fmt: skip
PUT_BACK = "put back before it returns"
WRITTEN = {"inputs": f"during the call and {PUT_BACK}", "calls": "during one of several calls",
           "orders": "during a call at other sizes"}  # fmt: skip
"""How a write to a read-only input is told, by episode."""
GATE = Purity()
