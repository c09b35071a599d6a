"""nn.Modules as tasks: build one under a seed, take its tensors, put others in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

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
