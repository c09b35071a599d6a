"""A problem's reference as something to be timed: called as a user would call it, without what a check adds to it."""

from __future__ import annotations

import importlib
import inspect
import os
from collections.abc import Callable, Mapping
from typing import Any

import torch

from ...kernel.languages._python import module_caller
from ...task import tree
from ...task.calling import Calling
from ...task.task import Workload

Call = Callable[[dict[str, Any]], Any]
TRANSFORMS = ("eager", "graph", "compile", "max-autotune")


def make(
    source: Any, workload: Workload, how: Calling, state: Mapping[str, torch.Tensor], transform: str = "eager",
    device: str = "cpu",
) -> Call:  # fmt: skip
    """The reference of ``source`` as a function of the named inputs; ``compile`` and ``max-autotune`` go through
    torch.compile, for fixed shapes."""
    if transform.startswith("peer:"):
        return _peer(transform.removeprefix("peer:"))
    own = {n: t.to(device) for n, t in state.items()}
    return _call(source, workload, how, own, _wrapper(transform), device)


def _peer(name: str) -> Call:
    """A function of an installed package, by its dotted name, called with the inputs in order."""
    module, _, attribute = name.rpartition(".")
    function = getattr(importlib.import_module(module), attribute)
    return lambda inputs: function(*inputs.values())


def _wrapper(transform: str) -> Callable[[Any], Any]:
    if transform in ("eager", "graph"):  # the graph is captured around it
        return lambda f: f
    if transform not in TRANSFORMS:
        raise ValueError(f"unknown way to compile a baseline: {transform!r}")
    os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = "1"
    os.environ.setdefault("USER", "baseline")  # a sealed child's user has no name, and torch asks for one
    import torch._inductor.config as config

    config.compile_threads = 1
    config.cpp.vec_isa_ok = True  # else it is tried by compiling, which takes longer than the kernel
    mode = "max-autotune-no-cudagraphs" if transform == "max-autotune" else None
    return lambda f: torch.compile(f, mode=mode, dynamic=False)


def _call(source: Any, workload: Workload, how: Calling, state: dict[str, torch.Tensor], wrap: Any,
          device: str) -> Call:  # fmt: skip
    if hasattr(source, "function"):  # a function over named inputs
        return _named(source.function, wrap)
    problem = source.problem
    entry = getattr(problem, "entry", "")
    if not hasattr(problem, "module") or not entry:
        parts = problem.parts(source.knobs(workload), how.seed)
        built = parts.build()
        return lambda inputs: parts.run(built, inputs)
    namespace = problem.module.execute(source.knobs(workload))
    if how.style == "module":
        built = module_caller(namespace[entry], how, state).module  # type: ignore[attr-defined]
        module = wrap(built.to(device))
        structure = how.structure
        return _positional(module, structure)
    return _positional(wrap(namespace[entry]), how.structure)


def _positional(function: Any, structure: dict[str, Any] | None) -> Call:
    """By position, arranged as the problem arranges its inputs."""
    if structure is None:
        return lambda inputs: function(*inputs.values())
    return lambda inputs: function(*tree.unflatten(structure, inputs))


def _named(function: Any, wrap: Any) -> Call:
    """By keyword where the function has the inputs' names, else by position; decided at the first call."""
    try:
        parameters: Mapping[str, inspect.Parameter] = inspect.signature(function).parameters
    except (TypeError, ValueError):
        parameters = {}
    names = {n for n, p in parameters.items() if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}
    open_ended = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
    wrapped = wrap(function)

    def call(inputs: dict[str, Any]) -> Any:
        if open_ended or names.issuperset(inputs):
            return wrapped(**inputs)
        return wrapped(*inputs.values())

    return call
