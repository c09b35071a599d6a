"""nn.Modules as tasks: build one under a seed, take its tensors, put others in, copy them into a kernel's module."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from ...errors import KernelError
from .oracle import as_dtype
from .trial import tensors_of


def construct(cls: Any, init: Any, seed: int) -> torch.nn.Module:
    """``cls(*init)`` (``cls(**init)`` for a dict) under ``seed``. Leaves the global generator as it was."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return cls(**init) if isinstance(init, Mapping) else cls(*init)


def put(module: torch.nn.Module, tensors: Mapping[str, torch.Tensor]) -> None:
    """Let ``tensors`` take the place of the parameters and buffers of these names: no copy, so that gradients reach
    them and running statistics are updated in them."""
    holders: dict[int, list[tuple[torch.nn.Module, str]]] = {}
    for part in module.modules():
        for table in (part._parameters, part._buffers):
            for leaf, value in table.items():
                holders.setdefault(id(value), []).append((part, leaf))
    for name, t in tensors.items():
        owner, _, leaf = name.rpartition(".")
        holder = module.get_submodule(owner)
        old = holder._parameters[leaf] if leaf in holder._parameters else holder._buffers.get(leaf)
        # Tied weights have one name and several holders.
        for part, own_name in holders.get(id(old), [(holder, leaf)]):
            _set(part, own_name, t)


def _set(part: torch.nn.Module, leaf: str, t: torch.Tensor) -> None:
    part._parameters.pop(leaf, None)
    part._buffers.pop(leaf, None)
    part.__dict__.pop(leaf, None)
    part.register_buffer(leaf, t)


def widen(module: torch.nn.Module, dtype: torch.dtype | None) -> None:
    """Bring the tensors that a module keeps outside of parameters and buffers to ``dtype``."""
    if dtype is None:
        return
    put(module, {k: as_dtype(v, dtype) for k, v in tensors_of(module).items() if v.is_floating_point()})
    for part in module.modules():
        for name, value in list(part.__dict__.items()):
            if isinstance(value, torch.Tensor):
                part.__dict__[name] = as_dtype(value, dtype)


def copy_state(
    module: torch.nn.Module, state: Mapping[str, torch.Tensor], built: Mapping[str, torch.Tensor]
) -> list[str]:
    """Copy the reference's ``state`` into a kernel's module: by name, then the rest by order and shape.

    ``built``: the reference's state as its constructor makes it under the same seed. A tensor of the kernel without a
    counterpart may stay as constructed only if ``state`` is just that (it may be a packed copy of a weight). Returns
    notes on such tensors. Raises KernelError for a like-named tensor of another shape, or one that can't be set.
    """
    own, left, notes = tensors_of(module), dict(state), []
    rest = []
    for name, target in own.items():
        if name not in left:
            rest.append((name, target))
            continue
        source = left.pop(name)
        if source.shape != target.shape:
            raise KernelError(
                f"the kernel's '{name}' has shape {tuple(target.shape)}, the reference's {tuple(source.shape)}",
                remedy="name a tensor of another layout differently, or keep the reference's shape",
            )
        target.copy_(source)
    for name, target in rest:
        match = next((k for k, v in left.items() if v.shape == target.shape and v.dtype == target.dtype), None)
        if match is not None:
            target.copy_(left.pop(match))
            continue
        if not left:
            continue
        missing = ", ".join(f"{k} {tuple(v.shape)}" for k, v in left.items())
        if not all(k in built and torch.equal(v, built[k]) for k, v in left.items()):
            raise KernelError(
                f"the kernel's '{name}' {tuple(target.shape)} has no counterpart in the reference",
                detail=f"still unmatched there: {missing}", remedy="give it the reference's name or shape",
            )  # fmt: skip
        notes.append(f"'{name}' {tuple(target.shape)} stays as constructed under the same seed; unmatched: {missing}")
    return notes
