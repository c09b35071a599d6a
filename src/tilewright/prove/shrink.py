"""Shrink a failing case as long as the same gate still fails on it: smaller sizes, then simpler values, then sizes again
with those values."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch

from ..errors import TilewrightError
from ..task.tensors import Dim
from . import sizes
from .case import Case

if TYPE_CHECKING:
    from .examination import Examination
    from .gate import Check, Gate

SECONDS, TRIES, MOST_SECONDS = 4.0, 40, 30.0
FATAL_KINDS = ("hangs",)


class Effort:
    """How much is spent: some seconds, and on a busy machine as many more as the first tries take."""

    def __init__(self) -> None:
        self.started = time.monotonic()
        self.tries = 0

    def spent(self) -> bool:
        """Whether it is enough; asked before each try."""
        self.tries += 1
        seconds = time.monotonic() - self.started
        return seconds > MOST_SECONDS or (seconds > SECONDS and self.tries > TRIES)


def shrink(exam: Examination, gate: Gate, case: Case, check: Check) -> tuple[Case, Check]:
    """The smallest case found within the time, and what it shows."""
    if check.got in FATAL_KINDS:
        return case, check
    effort = Effort()
    best, shown = _sizes(exam, gate, case, check, effort)
    best, shown = _values(exam, gate, best, shown, effort)
    return _sizes(exam, gate, best, shown, effort) if best.changed else (best, shown)


def _try(exam: Examination, gate: Gate, case: Case, shown: Check) -> Check | None:
    try:
        result = gate.check(exam, case)
    except TilewrightError:
        return None
    return result if result.failed and gate.same(shown, result) else None


def _sizes(exam: Examination, gate: Gate, best: Case, shown: Check, effort: Effort) -> tuple[Case, Check]:
    """Each dim in turn: the smallest size at which the case still fails, by trying small ones and then bisecting."""
    for name in list(best.dims):
        spec = exam.sheet.dims.get(name, Dim())
        high = best.dims[name]
        for size in sorted(
            {s for s in (spec.low, 1, 2, 3, high // 4, high // 2, high * 3 // 4, high - 1) if 0 <= s < high}
        ):
            if effort.spent():
                return best, shown
            if not spec.allows(size):
                continue
            got = _redraw(exam, gate, best, _with(exam, best, name, size), shown)
            if got is not None:
                best, shown = got
                break
        legal = _between(spec, best.dims[name])
        low, high = -1, len(legal)  # legal sizes below the one that fails; at ``high`` it fails
        while high - low > 1 and not effort.spent():
            middle = (low + high) // 2
            got = _redraw(exam, gate, best, _with(exam, best, name, legal[middle]), shown)
            if got is not None:
                (best, shown), high = got, middle
            else:
                low = middle
    return best, shown


def _between(spec: Dim, size: int) -> Sequence[int]:
    """The legal sizes below ``size``, in order."""
    if spec.sizes is not None:
        return sorted(s for s in spec.sizes if s < size)
    first = -(-spec.low // spec.multiple_of) * spec.multiple_of
    return range(first, size, spec.multiple_of)


def _with(exam: Examination, case: Case, name: str, size: int) -> dict[str, int] | None:
    """The case's dims with one set; where the task's constraints forbid that, with another made smaller along."""
    dims = {**case.dims, name: size}
    if all(sizes.holds(c, dims) for c in exam.sheet.constraints):
        return dims
    along = sizes.put(exam.sheet, case.dims, name, size)
    return along if along and all(n <= case.dims.get(d, n) for d, n in along.items()) else None


def _redraw(
    exam: Examination, gate: Gate, case: Case, dims: dict[str, int] | None, found: Check
) -> tuple[Case, Check] | None:
    if dims is None:
        return None
    try:
        smaller = exam.make(case.recipe.at(dims))
        smaller = _cut(smaller, case) if case.changed else smaller
    except (TilewrightError, KeyError):
        return None
    shown = _try(exam, gate, smaller, found)
    return None if shown is None else (smaller, shown)


def _cut(drawn: Case, case: Case) -> Case:
    """An edited case at the sizes of ``drawn``: the corner of each of its float tensors, in the layout that was drawn.
    Raises KeyError for an input that no recipe draws."""
    parameters = {f"state.{n}": t for n, t in drawn.state.items()}
    inputs = {n: _corner({**drawn.inputs, **parameters}[n], v) for n, v in case.inputs.items()}
    upstream = {n: _corner(drawn.cotangents[n], t) for n, t in case.cotangents.items()}
    state = {n: _corner(t, case.state.get(n)) for n, t in drawn.state.items()}
    return replace(drawn, inputs=inputs, cotangents=upstream, state=state, changed=True)


def _corner(drawn: Any, edited: Any) -> Any:
    if not isinstance(drawn, torch.Tensor) or not isinstance(edited, torch.Tensor) or not edited.is_floating_point():
        return drawn
    if drawn.dim() != edited.dim() or any(n > m for n, m in zip(drawn.shape, edited.shape, strict=True)):
        return drawn
    return _like(drawn, edited[tuple(slice(n) for n in drawn.shape)])


def _values(exam: Examination, gate: Gate, best: Case, shown: Check, effort: Effort) -> tuple[Case, Check]:
    """Float inputs: all zeros, all ones, small integers, then zeros in blocks."""
    for name, x in best.tensors.items():
        if not x.is_floating_point() or x.numel() == 0:
            continue
        for simpler in (torch.zeros_like, torch.ones_like, lambda t: t.round().clamp(-2, 2), torch.round):
            if effort.spent():
                return best, shown
            with torch.no_grad():
                changed = _like(x, simpler(torch.nan_to_num(x)))
            got = _try(exam, gate, _edit(best, name, changed), shown)
            if got is not None and not torch.equal(changed, x):
                best, shown = _edit(best, name, changed), got
                break
        best, shown = _blocks(exam, gate, best, name, shown, effort)
    return best, shown


def _blocks(exam: Examination, gate: Gate, best: Case, name: str, shown: Check, effort: Effort) -> tuple[Case, Check]:
    """Zero one block of elements after another, the blocks getting smaller."""
    n = best.inputs[name].numel()
    size = max(n // 2, 1)
    for _ in range(5):
        for start in range(0, n, size):
            x = best.inputs[name]
            flat = x.contiguous().reshape(-1).clone()
            if effort.spent() or not bool((flat[start : start + size] != 0).any()):
                continue
            flat[start : start + size] = 0
            trial = _edit(best, name, _like(x, flat.view(x.shape)))
            got = _try(exam, gate, trial, shown)
            if got is not None:
                best, shown = trial, got
        if size == 1 or n // size > 16:
            break
        size = max(size // 2, 1)
    return best, shown


def _edit(case: Case, name: str, x: torch.Tensor) -> Case:
    return replace(case, inputs={**case.inputs, name: x}, changed=True)


def _like(x: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    """``values`` in the memory layout of ``x``."""
    if x.is_contiguous() and x.storage_offset() == 0:
        return values.contiguous()
    raw = x.untyped_storage()
    copy = torch.empty(0, dtype=torch.uint8).set_(raw).clone()
    out = torch.empty(0, dtype=x.dtype).set_(copy.untyped_storage(), x.storage_offset(), x.shape, x.stride())
    if 0 in x.stride():
        return (
            x
            if not torch.equal(values, values.narrow(0, 0, 1).expand_as(values))
            else values.narrow(0, 0, 1).expand(x.shape)
        )
    out.copy_(values)
    return out
