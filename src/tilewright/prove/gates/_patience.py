"""How long a gate goes on after the cases that it must see."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from ...errors import TaskError
from ..case import Case, Recipe

if TYPE_CHECKING:
    from ..examination import Examination


def patient(exam: Examination, recipes: Iterable[Recipe], *, essential: int, share: float) -> Iterator[Case]:
    """Cases of the recipes: the first ``essential`` ones, then more while ``share`` of the gate's time is not used up.

    A size at which the reference can't be built is left out.
    """
    until = time.monotonic() + share * exam.gate_seconds
    made = 0
    for recipe in recipes:
        if made >= essential and time.monotonic() > until:
            return
        try:
            case = exam.make(recipe)
        except TaskError:
            continue
        made += 1
        yield case


def note_cost(exam: Examination, case: Case, seconds: float) -> None:
    """Remember how long the kernel took on a case."""
    exam.memory.setdefault("seconds by size", []).append((dict(case.dims), seconds))


def seconds(exam: Examination, dims: Mapping[str, int]) -> float:
    """What the kernel will take at these dims, judged by the largest cases seen: what a call costs anyway (the fastest
    one), and each dim twice as long, twice the rest. The least guess counts: it comes from the case that is most
    alike, the others are far too high. 0 where nothing is known."""
    known = sorted(exam.memory.get("seconds by size", []), key=lambda c: -math.prod(c[0].values()))
    anyway = min((spent for _, spent in known), default=0.0)
    guesses = [
        anyway + (spent - anyway) * math.prod(max(n / max(seen.get(name, 1), 1), 0.05) for name, n in dims.items())
        for seen, spent in known[:5]
    ]
    return min(guesses, default=0.0)
