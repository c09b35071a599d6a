"""A call of the candidate at sizes beyond memory: its Python runs on tensors that have sizes and strides and no data.

Torch's meta device does the torch side; each launch is sent to the evaluator with the sizes of its storages in place of
their bytes. What needs a value (``.item()``, a branch on data) raises, and then nothing is said about these sizes.
"""

from __future__ import annotations

from typing import Any

import torch

from ...kernel.languages import _facade
from ...task import tree


def call(role: Any, head: dict[str, Any]) -> dict[str, Any]:
    """``virtual``: input name to [dtype, sizes, strides, offset, elements of the storage]. Others as ``call``'s."""
    with _facade.virtual(), torch.no_grad():
        tensors = {n: made(*layout) for n, layout in head["virtual"].items()}
        inputs = {n: tensors[n] if n in tensors else tree.unflatten(head["scalars"][n], {}) for n in head["order"]}
        module = getattr(role.callable, "module", None)
        if module is not None:
            module.to(torch.device("meta"))
        role.evaluator.begin()
        role.evaluator.virtual = {role.evaluator.number(t): n for n, t in tensors.items()}
        try:
            role.callable(inputs)
        finally:
            role.evaluator.virtual = None
    return {"done": True}


def made(dtype: str, shape: list[int], strides: list[int], offset: int, elements: int) -> torch.Tensor:
    """A tensor without memory over a storage of so many elements."""
    flat = torch.empty((elements,), dtype=getattr(torch, dtype), device="meta")
    return flat.as_strided(shape, strides, offset)


def storages(tensors: dict[str, torch.Tensor], number: Any, inputs: dict[int, str]) -> dict[str, Any]:
    """What a launch needs to know of its tensors: storage's number and bytes, dtype, offset, sizes, strides, and which
    input it is."""
    out = {}
    for n, t in tensors.items():
        key = number(t)
        out[n] = {
            "storage": key,
            "nbytes": t.untyped_storage().nbytes(),
            "dtype": str(t.dtype).removeprefix("torch."),
            "offset": t.storage_offset(),
            "shape": list(t.shape),
            "strides": list(t.stride()),
            "input": inputs.get(key, ""),
        }
    return out
