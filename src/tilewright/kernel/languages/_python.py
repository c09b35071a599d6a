"""Kernels written as Python files: run the file as a module, find the entry, call it as the task says."""

from __future__ import annotations

import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from ...task import tree
from ...task.calling import Calling

Inputs = dict[str, Any]


class KernelFault(Exception):
    """The candidate can't be loaded or called: its fault, told with the place."""

    tilewright_kind = "interface"


def run_file(path: str, text: str) -> types.ModuleType:
    """Execute ``text`` as the module of file ``path``, importable by its stem and with its folder on the path."""
    module = types.ModuleType(Path(path).stem)
    module.__file__ = str(Path(path).resolve())
    sys.modules[module.__name__] = module
    sys.path.insert(0, str(Path(path).resolve().parent))
    exec(compile(text, module.__file__, "exec", dont_inherit=True), module.__dict__)
    return module


class PythonLoaded:
    """A loaded Python kernel."""

    def __init__(self, kernel: dict[str, Any], evaluator: Any = None):
        self.kernel = kernel
        self.module = run_file(kernel["path"], kernel["text"])
        if not hasattr(self.module, kernel["entry"]):
            raise KernelFault(f"{Path(kernel['path']).name} defines no '{kernel['entry']}'")
        self.entry = getattr(self.module, kernel["entry"])

    def build(self, how: Calling, state: dict[str, torch.Tensor]) -> Callable[[Inputs], Any]:
        """The callable over named inputs (see ``task/calling.py``)."""
        if how.style == "module":
            return module_caller(self.entry, how, state)
        if how.style == "destination":
            return destination_caller(self.entry, how)
        if how.style == "keywords":
            return lambda inputs: self.entry(**inputs)
        if how.structure is not None:
            structure = how.structure
            return lambda inputs: self.entry(*tree.unflatten(structure, inputs))
        return lambda inputs: self.entry(*inputs.values())


def destination_caller(entry: Any, how: Calling) -> Callable[[Inputs], Any]:
    """``run(*inputs, *outputs)``: the outputs are made here, as empty as ``torch.empty`` leaves them, and returned."""

    def call(inputs: Inputs) -> Any:
        made = [torch.empty(o["shape"], dtype=getattr(torch, o["dtype"])) for o in how.outputs]
        entry(*inputs.values(), *made)
        return made[0] if len(made) == 1 else tuple(made)

    return call


def module_caller(entry: Any, how: Calling, state: dict[str, torch.Tensor]) -> Callable[[Inputs], Any]:
    """``ModelNew(*init)`` with the reference's parameters and buffers copied in."""
    init = tree.unflatten(how.init, {n: t for n, t in state.items() if n.startswith("init.")}) if how.init else []
    torch.manual_seed(how.seed)
    module = entry(*init) if isinstance(init, list | tuple) else entry(**init)
    copy_state(module, {n: t for n, t in state.items() if not n.startswith("init.")})
    structure = how.structure

    def call(inputs: Inputs) -> Any:
        own = {n.removeprefix("state."): t for n, t in inputs.items() if n.startswith("state.")}
        if own:
            adopt(module, own)
        plain = {n: v for n, v in inputs.items() if not n.startswith("state.")}
        return module(*tree.unflatten(structure, plain)) if structure is not None else module(*plain.values())

    call.module = module  # type: ignore[attr-defined]
    return call


def copy_state(module: Any, state: dict[str, torch.Tensor]) -> None:
    """Copy by name; where names differ, by order among tensors of the same shape."""
    if not isinstance(module, torch.nn.Module) or not state:
        return
    own = dict(module.named_parameters()) | dict(module.named_buffers())
    with torch.no_grad():
        if set(own) == set(state):
            pairs = [(own[n], state[n]) for n in own]
        else:
            pairs = match_by_shape(own, state)
        for target, source in pairs:
            target.copy_(source)


def match_by_shape(
    own: dict[str, torch.Tensor], state: dict[str, torch.Tensor]
) -> list[tuple[torch.Tensor, torch.Tensor]]:
    left = dict(state)
    pairs = []
    for name, target in own.items():
        source = name if name in left else next((n for n, t in left.items() if t.shape == target.shape), None)
        if source is None:
            raise KernelFault(
                f"ModelNew has a parameter or buffer '{name}' {tuple(target.shape)} that matches none of the reference's: "
                + ", ".join(f"{n} {tuple(t.shape)}" for n, t in state.items())
            )
        pairs.append((target, left.pop(source)))
    return pairs


def adopt(module: torch.nn.Module, tensors: dict[str, torch.Tensor]) -> None:
    """Put the caller's tensors in place of the module's parameters (so that gradients reach them)."""
    for name, t in tensors.items():
        owner, _, leaf = name.rpartition(".")
        holder = module.get_submodule(owner) if owner else module
        if leaf in holder._parameters:
            del holder._parameters[leaf]
        if leaf in holder._buffers:
            del holder._buffers[leaf]
        setattr(holder, leaf, t)
