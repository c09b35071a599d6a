"""Witness: from a difference between two formulas to a concrete input on which the kernel is wrong.

Starts are the hostile families of ``task/values.py`` at the traced sizes; both programs are evaluated in real
arithmetic on each; from the most telling ones gradient ascent drives the difference up. What is found is rounded to
the case's dtype and replayed on the real kernel: only what fails there, against the oracle and its budget, is a
witness.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import torch

from ..errors import TilewrightError, Unsupported
from ..task import values
from ..task.tensors import TensorSpec
from .case import Case, Recipe
from .equivalence import Difference

if TYPE_CHECKING:
    from .child.algebra_session import AlgebraSession
    from .examination import Examination
    from .gate import Check

STARTS = 200
BATCH = 11
GRID_EACH, GRIDS = 8, 8  # one start in eight lies on a grid, of step 1/2 to 1/256
PLAIN = 100.0  # times the rough budget: no need to look further
STEPS = 60
CLIMBS = 4
LEAST = 1e-12  # relative
CONFIRM_S = 15.0


@dataclass
class Search:
    """What was looked at: the number of starts and of ascent steps' rounds, the worst difference in real arithmetic,
    the cases most worth replaying, best first, and those that differ most in float64 (``suspects``). ``cut``: the
    clock ended it."""

    starts: int = 0
    compared: int = 0
    unsteady: int = 0
    worst: Difference = field(default_factory=Difference)
    candidates: list[tuple[float, dict[str, torch.Tensor]]] = field(default_factory=list)
    suspects: list[tuple[Difference, dict[str, torch.Tensor]]] = field(default_factory=list)
    climbs: int = 0
    cut: bool = False


def starts(exam: Examination, case: Case, most: int = STARTS) -> list[dict[str, torch.Tensor]]:
    """Inputs of hostile families at the case's sizes; integers are the case's own, since the path may depend on
    them."""
    found = []
    families = ("natural", *values.FAMILIES)
    any_value = free(exam, case)
    for i in range(most):
        grid = 2.0 ** (1 + i // GRID_EACH % GRIDS) if any_value and i % GRID_EACH == GRID_EACH - 1 else 0.0
        family = "natural" if grid else families[i % len(families)]
        recipe = replace(case.recipe, family=family, seed=exam.seed_for("starts", i), grad=False)
        try:
            made = exam.make(recipe)
        except TilewrightError:
            continue
        changed = {}
        for n, t in symbolic(case).items():
            other = made.inputs.get(n)
            if other is None and n.startswith("state."):
                other = made.state.get(n.removeprefix("state."))
            if other is None or not t.is_floating_point() or not isinstance(other, torch.Tensor):
                other = t
            if n.startswith("grad of "):
                g = values.generator(exam.seed_for("starts", n, i))
                other = torch.randn(t.shape, generator=g).to(t.dtype)
            changed[n] = on_grid(other, grid) if grid else other.contiguous()
        found.append(changed)
    return found


def on_grid(t: torch.Tensor, grid: float) -> torch.Tensor:
    """Values moved to multiples of 1 / ``grid`` (within their own range): sums are exact there, ties and equal numbers
    occur."""
    if not t.is_floating_point() or not t.numel():
        return t.contiguous()
    moved = (t.double() * grid).round() / grid
    return moved.clamp(t.min().double(), t.max().double()).to(t.dtype).contiguous()


def symbolic(case: Case) -> dict[str, torch.Tensor]:
    """Everything that a trace takes as input: tensors of the call and incoming gradients."""
    return {**case.tensors, **{f"grad of {n}": t for n, t in case.cotangents.items()}}


def unit(case: Case) -> float:
    """Rounding unit of the case's dtype."""
    name = case.recipe.workload.dtype or "float32"
    dtype = getattr(torch, name, torch.float32)
    return torch.finfo(dtype).eps / 2 if dtype.is_floating_point else 2.0**-24


def bounds(exam: Examination, case: Case) -> dict[str, list[float]]:
    """What each float input may hold: the author's bounds, else within reach of the dtype."""
    found = {}
    for n, t in symbolic(case).items():
        if not t.is_floating_point():
            continue
        top = min(1e4, float(torch.finfo(t.dtype).max) / 8)
        spec = exam.sheet.inputs.get(n)
        if isinstance(spec, TensorSpec) and spec.values.kind == "uniform" and not exam.contract.inferred:
            found[n] = [float(values.bound(v, case.dims)) for v in (spec.values.low, spec.values.high)]
        else:
            found[n] = [-top, top]
    return found


def free(exam: Examination, case: Case) -> bool:
    """Whether float inputs may take any value: then ascent stays within the contract."""
    return all(not isinstance(s, TensorSpec) or s.values.kind in ("normal", "uniform") or not t.is_floating_point()
               for n, t in case.tensors.items() for s in [exam.sheet.inputs.get(n)])  # fmt: skip


def look(exam: Examination, child: AlgebraSession, case: Case, seconds: float, most: int = STARTS) -> Search:
    """Both programs in real arithmetic on ``most`` starts, or until one is plain. ``seconds`` is a backstop."""
    search = Search()
    deadline = time.monotonic() + seconds
    all_starts = starts(exam, case, most)
    scored: list[tuple[float, dict[str, torch.Tensor]]] = []
    for first in range(0, len(all_starts), BATCH):
        if time.monotonic() > deadline and search.starts >= BATCH:
            search.cut = True
            break
        part = all_starts[first : first + BATCH]
        if max((s for s, _ in scored), default=0.0) > PLAIN:
            break
        for inputs, d in zip(part, child.real(part, unit(case)), strict=True):
            search.starts += 1
            search.compared += d.compared
            search.unsteady += d.unsteady
            scored.append((d.ratio, inputs))
            if d.relative > 0:
                search.suspects.append((replace(d, start=search.starts - 1), inputs))
            if d.relative > search.worst.relative:
                search.worst = replace(d, start=search.starts - 1)
    search.candidates = sorted(scored, key=lambda s: -s[0])[: 2 * CLIMBS]
    search.suspects.sort(key=lambda s: -s[0].relative)
    return search


def confirmed(child: AlgebraSession, search: Search, least: float, most: int) -> tuple[int, int, Difference | None]:
    """Whether what stands out in float64 is so in truth: the furthest starts enclosed one by one. Returns how many
    were looked at, how many of those stayed undecided, and the largest difference that an enclosure shows. Raises
    Unsupported where time alone leaves open what is within the dtype's roundings."""
    undecided, seen, worst = 0, 0, Difference()
    deadline = time.monotonic() + CONFIRM_S
    for d, inputs in [s for s in search.suspects if s[0].relative > least][:most]:
        if worst.relative >= 0.5 * d.relative:
            break
        seen += 1
        e = child.enclose([inputs], least, seconds=max(0.0, deadline - time.monotonic()))[0]
        if e.late and not worst.relative and d.ratio < 1.0:
            raise Unsupported(f"{e.reason}, where float64 sees a difference of {d.relative:.1g}")
        undecided += e.status == "undecided"
        size = min(e.relative, d.relative)
        if e.status == "different" and size > worst.relative:
            worst = replace(d, relative=size, output=e.output, index=list(e.index), kernel=e.kernel,
                            reference=e.reference)  # fmt: skip
    return seen, undecided, worst if worst.relative else None


def climb(exam: Examination, child: AlgebraSession, case: Case, search: Search, seconds: float) -> None:
    """Ascent from the best starts (and plain ones); what it finds joins the candidates."""
    if not free(exam, case):
        return
    own = {n: t.contiguous() for n, t in symbolic(case).items()}
    chosen = [*[inputs for _, inputs in search.candidates[: CLIMBS - 1]], own]
    limits = bounds(exam, case)
    found = []
    for inputs in chosen:
        try:
            got = child.climb([inputs], unit(case), STEPS, seconds / len(chosen), limits)
        except Unsupported:
            continue
        search.climbs += 1
        found += [(ratio, inputs) for inputs, ratio in got]
    search.candidates = sorted([*found, *search.candidates], key=lambda s: -s[0])


def replayed(exam: Examination, child: AlgebraSession | None, case: Case, search: Search,
             least: float = 1.0) -> tuple[Case, Check] | None:  # fmt: skip
    """The first candidate on which the real kernel is wrong."""
    for ratio, inputs in search.candidates[:CLIMBS]:
        if ratio < least:
            return None
        trial = concrete(case, inputs)
        result = exam.judge(trial, exam.run(trial))
        if result.failed and not one_formula(child, trial):
            return trial, result
    return None


def one_formula(child: AlgebraSession | None, trial: Case) -> bool:
    """Whether enclosures show that both are the same number, as far as the dtype can tell, wherever float64 sees them
    apart: then what fails there is the rounding of the kernel, or of the float64 oracle, and no witness of another
    formula."""
    if child is None or child.dead:
        return False
    e = child.enclose([{n: t.contiguous() for n, t in symbolic(trial).items()}], LEAST)[0]
    return e.seen > 0 and (e.status == "equal" or (e.status == "different" and e.relative < unit(trial)))


def flipped(exam: Examination, child: AlgebraSession, case: Case) -> tuple[Case, Check, str] | None:
    """The first input that turns a comparison of the kernel and makes the real kernel wrong, and that comparison."""
    if not free(exam, case):
        return None
    for where, inputs in child.flips(bounds(exam, case)):
        trial = concrete(case, inputs)
        result = exam.judge(trial, exam.run(trial))
        if result.failed and not one_formula(child, trial):
            return trial, result, where
    return None


def concrete(case: Case, inputs: Mapping[str, torch.Tensor]) -> Case:
    """A case with these inputs, rounded to the dtypes of the case's own."""
    rounded = {n: inputs[n].to(t.dtype) for n, t in symbolic(case).items() if n in inputs}
    cotangents = {n: rounded.get(f"grad of {n}", t) for n, t in case.cotangents.items()}
    own = {n: t for n, t in rounded.items() if n in case.inputs}
    recipe: Recipe = replace(case.recipe, extra=(*case.recipe.extra, ("witness", True)))
    return replace(case, recipe=recipe, inputs={**case.inputs, **own}, cotangents=cotangents, changed=True)
