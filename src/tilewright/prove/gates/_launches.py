"""The launches of sampled calls, evaluated once and looked at by several gates: bounds, races, coverage, rounding.

The cases are the calls that the gates before made anyway, backward passes included; where there are few, some more:
the given sizes, sizes off every tile, another layout. The log of a launch (``prove/child/footprint.py``) is the
evaluator's own: the candidate can't change it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...errors import TaskError
from .. import sizes
from ..case import Case, Recipe
from ..child.session import Outcome

if TYPE_CHECKING:
    from ..examination import Examination

MOST = 6
LOGGED, BACKWARD = 32, 10
BUDGET = 8192
KEY = "launches of sampled calls"


@dataclass
class Held:
    """Cases and what they gave, by the case's id."""

    cases: list[Case] = field(default_factory=list)
    outcomes: dict[int, Outcome] = field(default_factory=dict)


def absent(exam: Examination) -> str:
    """Why there are no launches to look at; empty if there may be."""
    return "" if exam.kernel.language == "triton" else "only Triton kernels have launches that are evaluated"


def sampled(exam: Examination) -> Iterator[Case]:
    """The shared cases; the same ones for every gate of an examination."""
    held: Held = exam.memory.setdefault(KEY, Held())
    if not held.cases:
        for case, outcome in _logged(exam):
            held.cases.append(case)
            held.outcomes[id(case)] = outcome
        if len(held.cases) < MOST:
            held.cases += _made(exam)
    yield from held.cases


def _logged(exam: Examination) -> Iterator[tuple[Case, Outcome]]:
    """Calls that other gates made, of different form, small ones first come. Some places are kept for calls with backward,
    whose kernels run in no other call."""
    forms: dict[str, tuple[Case, Outcome]] = {}
    for case, outcome in exam.launched:
        r = case.recipe
        scalars = sorted(map(repr, r.workload.scalars.items()))
        form = repr((sorted(case.dims.items()), r.workload.dtype, r.layout, r.grad, scalars))
        forms.setdefault(form, (case, outcome))
    backward = [x for x in forms.values() if x[0].recipe.grad]
    plain = [x for x in forms.values() if not x[0].recipe.grad]
    yield from plain[: LOGGED - min(BACKWARD, len(backward))]
    yield from backward[:BACKWARD]


def outcome_of(exam: Examination, case: Case) -> Outcome:
    """The call's outcome with its launches (outputs may be left out): computed once, and anew to confirm a finding."""
    held: Held = exam.memory.setdefault(KEY, Held())
    if id(case) in held.outcomes and not exam.confirming:
        return held.outcomes[id(case)]
    outcome = exam.run(case)
    if any(c is case for c in held.cases):
        held.outcomes[id(case)] = outcome
    return outcome


def called(exam: Examination, case: Case) -> bool:
    """Whether the kernel was called on one of the shared cases, and what it launched is known."""
    held: Held = exam.memory.setdefault(KEY, Held())
    return id(case) in held.outcomes


def _made(exam: Examination) -> Iterator[Case]:
    for recipe in (*_forward(exam), *_backward(exam)):
        try:
            yield exam.make(recipe)
        except TaskError:
            continue


def _forward(exam: Examination) -> Iterable[Recipe]:
    first = exam.workload()
    planned = sizes.plan(exam.sheet, first.dims, hints=sizes.constants(exam.kernel.text), most=MOST, budget=BUDGET)
    layouts = ("contiguous", "transposed", "contiguous", "sliced", "contiguous", "contiguous")
    dtypes = exam.dtypes()
    for i, dims in enumerate([first.dims, *(s.dims for s in planned)]):
        w = first.model_copy(update={"dims": dims, "dtype": dtypes[i % len(dtypes)]})
        layout = layouts[i % len(layouts)] if exam.contract.layouts == "promised" else "contiguous"
        yield Recipe(w, layout=layout, seed=exam.seed_for("launches", i))


def _backward(exam: Examination) -> Iterable[Recipe]:
    if exam.contract.gradients != "promised" or exam.contract.random:
        return ()
    from .gradients import recipes

    return [r for _, r in zip(range(2), recipes(exam), strict=False)]


def computed(outcome: Outcome) -> list[dict[str, Any]]:
    """Launches that were evaluated and are described in full."""
    return [n for n in outcome.launches if "writes" in n]


def short(where: str) -> str:
    """``file:line`` without folders."""
    name, _, line = where.rpartition(":")
    return f"{Path(name).name}:{line}" if name else where


def plain(text: str) -> str:
    """A launch record's words with file names in place of paths."""
    return re.sub(r"(/[^\s:]+/)([^/\s:]+:\d+)", r"\2", text)


def count(n: int, what: str) -> str:
    """``3 launches``, ``1 launch``."""
    plural = what + ("es" if what.endswith(("ch", "s")) else "s")
    return f"{n} {what if n == 1 else plural}"
