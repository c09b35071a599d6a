"""Which calls the gates on launches look at, and a layout that a maximum can't pass over."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import torch

from tilewright.prove.case import Case, Recipe
from tilewright.prove.gates import _launches
from tilewright.prove.layouts import LAYOUTS
from tilewright.task.calling import Calling
from tilewright.task.task import Workload


def call(size: int, *, grad: bool = False) -> tuple[Case, Any]:
    recipe = Recipe(Workload(dims={"N": size}, dtype="float32"), grad=grad)
    return Case(recipe, {}, {}, Calling()), object()


def test_calls_with_backward_keep_their_places_behind_many_others() -> None:
    made = [call(n) for n in range(100)] + [call(n, grad=True) for n in range(20)]
    seen = list(_launches._logged(SimpleNamespace(launched=made)))  # type: ignore[arg-type]
    assert len(seen) == _launches.LOGGED
    assert sum(c.recipe.grad for c, _ in seen) == _launches.BACKWARD
    assert seen[0][0].dims == {"N": 0}


def test_without_backward_all_places_are_for_the_others() -> None:
    seen = list(_launches._logged(SimpleNamespace(launched=[call(n % 40) for n in range(100)])))  # type: ignore[arg-type]
    assert len({c.dims["N"] for c, _ in seen}) == len(seen) == _launches.LOGGED


def test_between_the_elements_of_a_crowded_view_stand_larger_ones_of_both_signs() -> None:
    x = torch.randn(3, 5)
    view = LAYOUTS["crowded"](x)
    assert view is not None
    assert torch.equal(view, x)
    flat = torch.empty(0).set_(view.untyped_storage())[: x.numel()]  # what a kernel reads that takes x for contiguous
    assert flat.max() > 1e4 > x.max()
    assert flat.min() < -1e4 < x.min()
