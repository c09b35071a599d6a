"""Sizes beyond memory: the contract's largest dims, as far as inputs and outputs would fit the target."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ...task.tensors import TensorSpec
from .. import sizes

if TYPE_CHECKING:
    from ..examination import Examination

MEMORY = 64 << 30  # bytes of inputs and outputs together: what an H200 holds with as much left for the kernel's own
MOST = 4
TELLING = 1 << 24  # elements from which on sampled sizes say little


def points(exam: Examination, dtype: str) -> list[dict[str, int]]:
    """Dims to try, largest first. Each dim in turn is as large as it may be, then the others as large as fits; where
    the task's modules hold state of a fixed size, the given dims alone."""
    sheet = exam.sheet
    given = dict(exam.workload().dims)
    if not sheet.inputs:
        return []
    if sheet.module_state or sheet.contract.inferred or not sheet.dims:
        return [given] if sizes.elements(sheet, given) >= TELLING else []
    found: list[dict[str, int]] = []
    for lead in sheet.dims:
        dims: dict[str, int] = sizes.least(sheet, given)
        for name in (lead, *(n for n in sheet.dims if n != lead)):
            dims = grown(exam, dims, name, dtype)
        if dims not in found and sizes.elements(sheet, dims) >= TELLING:
            found.append(dims)
    found.sort(key=lambda d: -sizes.elements(sheet, d))
    return found[:MOST]


def grown(exam: Examination, dims: Mapping[str, int], name: str, dtype: str) -> dict[str, int]:
    """``dims`` with one dim as large as the contract and the target's memory allow."""
    spec = exam.sheet.dims[name]
    best = dict(dims)
    low, high = dims[name], max(spec.sizes) if spec.sizes else spec.high
    middle = high
    while low <= high:
        size = sizes.near(spec, middle)
        trial = sizes.put(exam.sheet, dims, name, size) if size else None
        if trial is not None and sizes.nbytes(exam.sheet, trial, dtype) <= MEMORY:
            best = trial if trial[name] >= best[name] else best
            low = middle + 1
        else:
            high = middle - 1
        middle = (low + high) // 2
    return best


def layout(spec: TensorSpec, dims: Mapping[str, int], dtype: str, turned: bool) -> list[Any]:
    """[dtype, sizes, strides, offset, elements of the storage] of an input; ``turned``: the last two axes swapped in
    memory."""
    shape = list(spec.sizes(dims))
    order = list(range(len(shape)))
    if turned and len(shape) > 1 and spec.layouts != "contiguous":
        order[-2:] = order[:-3:-1]
    strides, step = [0] * len(shape), 1
    for axis in reversed(order):
        strides[axis] = step
        step *= max(shape[axis], 1)
    return [dtype, shape, strides, 0, 0 if 0 in shape else step]
