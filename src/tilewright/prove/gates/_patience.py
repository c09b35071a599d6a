"""How long a gate goes on after the cases that it must see."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
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
