"""Sources whose contract is inferred: the sheet is found by trials, and the problem's own code makes the inputs.

KernelBench files, GPU MODE problems and functions with ``get_inputs`` differ only in their ``Problem``: what their
integers are, how they make inputs, what they build and call.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy
import torch

from ...errors import TaskError, Unsupported
from .. import tree
from ..calling import Calling
from ..contract import INFERRED
from ..task import TaskSheet, Workload
from ..tensors import DTYPES, INTEGERS, Scalar, TensorSpec, Values
from . import modules, settle, workloads
from .device import on_this_machine
from .load import user_code
from .oracle import as_dtype, in_dtype, widened
from .record import unwritten
from .symbols import Inferred, Prober, infer
from .trial import Leaf, NeedsValues, Parts, Subject, Trial, dtype_name, run_trial, tensors_of
from .workloads import Budget, human


class Problem(Subject):
    """A subject with what a source needs beside trials. ``skeleton`` and ``names``: form and names of the arguments,
    known once inputs were made."""

    path: Path
    where: str
    names: list[str]
    knob_names: Mapping[str, str]
    skeleton: list[Any] | None
    style: str = "function"

    def settings(self, workload: Workload) -> dict[str, Any]:
        """What a workload says beside its dims."""
        return {}

    def checker(self, values: Mapping[str, int]) -> Callable[..., Any] | None:
        """The problem's own checker, if its contract asks for it."""
        return None


def seed_everything(seed: int) -> None:
    """Seed what problem files draw from."""
    torch.manual_seed(seed)
    random.seed(seed)
    numpy.random.seed(seed % (1 << 32))


class InferredSource:
    """A ``Source`` over a ``Problem``. See ``Source`` for the methods."""

    def __init__(self, problem: Problem, inferred: Inferred, sheet: TaskSheet):
        self.problem, self.inferred, self.sheet = problem, inferred, sheet
        self._seed = 0

    def knobs(self, workload: Workload) -> dict[str, int]:
        """Values of the problem's integers at a workload; raises TaskError for a dim that it doesn't have."""
        for name in workload.dims:
            if name not in self.inferred.symbols:
                raise TaskError(f"the problem has no dim '{name}'", where=self.problem.where,
                                detail=f"dims: {', '.join(self.inferred.symbols) or 'none'}")  # fmt: skip
        return {**self.inferred.knobs(workload.dims), **self.problem.settings(workload)}

    def inputs(self, workload: Workload, seed: int) -> dict[str, Any]:
        parts = self.problem.parts(self.knobs(workload), seed)
        with torch.random.fork_rng(devices=[]), on_this_machine():
            seed_everything(seed)
            made = parts.inputs()
        return {k: in_dtype(v, workload.dtype) for k, v in made.items()}

    def state(self, workload: Workload, seed: int) -> dict[str, torch.Tensor]:
        self._seed = seed
        with on_this_machine():
            module = self.problem.parts(self.knobs(workload), seed).build()
        own = {} if module is None else tensors_of(module)
        return {k: in_dtype(v, workload.dtype).clone() for k, v in own.items()}

    def reference(
        self, inputs: dict[str, Any], workload: Workload, state: dict[str, torch.Tensor] | None, *,
        dtype: torch.dtype | None,
    ) -> Any:  # fmt: skip
        parts = self.problem.parts(self.knobs(workload), self._seed)
        with on_this_machine():
            module = parts.build()
        own = {k.removeprefix("state."): v for k, v in inputs.items() if k.startswith("state.")}
        plain = {k: as_dtype(v, dtype) for k, v in inputs.items() if not k.startswith("state.")}
        if module is not None:
            if state is not None:
                state.update({k: as_dtype(v, dtype) for k, v in state.items()})
                modules.put(module, state)
            modules.put(module, {k: as_dtype(v, dtype) for k, v in own.items()})
            modules.widen(module, dtype)
        with on_this_machine(), widened(dtype):
            out = parts.run(module, plain)
        if module is not None and state is not None:
            state.update({k: v for k, v in tensors_of(module).items() if k in state and v is not state[k]})
        return out

    def calling(self, workload: Workload, seed: int) -> tuple[Calling, dict[str, torch.Tensor]]:
        structure = tree.structure(self.problem.skeleton or [], self.problem.names)
        if self.problem.style != "module":
            style: Any = self.problem.style
            return Calling(style=style, structure=structure, seed=seed), {}
        with on_this_machine():
            init, tensors = tree.flatten(self.problem.parts(self.knobs(workload), seed).init(), "init")
        return Calling(style="module", init=init, structure=structure, seed=seed), tensors

    def check(self, inputs: dict[str, Any], outputs: Any) -> tuple[bool, str] | None:
        checker = self.problem.checker({})
        if checker is None or self.sheet.contract.postcondition != "checker":
            return None
        data = tree.unflatten_arguments(inputs, self.problem.skeleton or [], self.problem.names)
        with user_code(self.problem.path, "check_implementation()"), on_this_machine():
            answer = checker(*data, outputs)
        if isinstance(answer, tuple):
            return bool(answer[0]), str(answer[1])
        # The older form returns a message, empty if all is well.
        return (answer in (None, "", True)), "" if answer in (None, True) else str(answer)

    def law(self, name: str, run: Callable[..., Any], inputs: dict[str, Any]) -> bool:
        raise TaskError(f"the problem declares no law '{name}'", where=self.problem.where)


Plan = Callable[[Any, Prober, Inferred, Budget], tuple[tuple[Workload, ...], list[str]]]


def infer_source(
    problem: Problem, sheet: TaskSheet, budget: Budget, *, fixed: Iterable[str] = (), plan: Plan | None = None
) -> InferredSource:
    """Complete ``sheet`` (name, source, path, files, entry) by trials and a few real runs at small sizes.

    ``fixed``: knobs that stay; ``plan``: how workloads are chosen, if not by shrinking the given sizes.
    """
    base, real = _base(problem, budget)
    probe = Prober(problem, real, budget.seconds)
    inferred = infer(probe, base, problem.knob_names, fixed=fixed)
    probe.left += budget.seconds / 2
    chosen, notes = plan(problem, probe, inferred, budget) if plan else workloads.choose(probe, inferred, budget)
    source = InferredSource(problem, inferred, sheet)
    source.sheet = _sheet(sheet, problem, inferred, chosen, [*inferred.notes, *notes])
    settle.behave(source)
    settle.in_time(source, budget)
    return source


def _base(problem: Problem, budget: Budget) -> tuple[Trial, bool]:
    """The trial at the given sizes; really run only where fake tensors don't reach and the inputs are small."""
    try:
        base = run_trial(problem, {})
    except NeedsValues as e:
        reason = str(e)
    else:
        _must_return(base, problem)
        return base, False
    _affordable(problem, reason, budget)
    base = run_trial(problem, {}, real=True)
    base.reason = reason
    _must_return(base, problem)
    return base, True


def _affordable(problem: Problem, reason: str, budget: Budget) -> None:
    """Inputs are known under fake tensors even where the reference is not; don't allocate gigabytes."""

    class InputsOnly(Subject):
        knobs = problem.knobs

        def parts(self, values: Mapping[str, int], seed: int) -> Parts:
            return Parts(problem.parts(values, seed).inputs, lambda: None, lambda module, leaves: list(leaves.values()))

    try:
        size = run_trial(InputsOnly(), {}).bytes // 2
    except NeedsValues:
        return
    if size > budget.real_bytes:
        raise TaskError(f"the reference can't be followed without values ({reason}), and its inputs take {human(size)}",
                        where=problem.where, remedy="make the sizes in the problem file smaller")  # fmt: skip


def _must_return(base: Trial, problem: Problem) -> None:
    if not base.outputs:
        got = ", ".join(type(v).__name__ for v in base.plain_outputs.values()) or "nothing"
        raise TaskError(f"the reference returns no tensor (got {got})", where=problem.where,
                        remedy="return a tensor, or a tuple or dict with tensors")  # fmt: skip


def _sheet(
    sheet: TaskSheet, problem: Problem, inferred: Inferred, chosen: tuple[Workload, ...], notes: list[str]
) -> TaskSheet:
    base = inferred.base
    order = _order(problem)
    inputs: dict[str, Any] = {}
    for name in order:
        if name in base.inputs:
            inputs[name] = _spec(name, base.inputs[name], inferred, "in")
            if not base.inputs[name].contiguous:
                notes.append(f"input '{name}' is not contiguous as given; the problem's own code makes it")
        else:
            inputs[name] = Scalar(_plain(base.scalars[name], name, problem))
    outputs = {n: _spec(n, leaf, inferred, "out") for n, leaf in base.outputs.items()}
    buffers = [n for n, leaf in base.inputs.items() if unwritten(leaf.values)]
    if buffers:
        notes.append(f"uninitialised inputs are room for results: {', '.join(buffers)}")
    if base.reason:
        notes.append(f"run with real tensors, since fake ones don't reach: {base.reason}")
    extra = {
        "buffers": buffers, "given_bytes": base.bytes, "given_flops": base.flops,
        "bindings": {n: list(s.knobs) for n, s in inferred.symbols.items()},
        "state": {n: {"shape": list(leaf.shape), "dtype": leaf.dtype} for n, leaf in base.state.items()},
        "outputs": {n: {"shape": list(leaf.shape), "dtype": leaf.dtype} for n, leaf in base.outputs.items()},
        "plain_outputs": {n: repr(v) for n, v in base.plain_outputs.items()},
    }  # fmt: skip
    return sheet.model_copy(update={
        "inputs": inputs, "outputs": None if any(s is None for s in outputs.values()) else outputs,
        "dims": inferred.dims, "given": {n: s.value for n, s in inferred.symbols.items()},
        "workloads": chosen, "contract": INFERRED.model_copy(update={"identifier": sheet.name}),
        "notes": tuple(notes), "module_state": bool(base.state), "extra": {**sheet.extra, **extra},
    })  # fmt: skip


def _order(problem: Problem) -> list[str]:
    return list(tree.flatten_arguments(problem.skeleton or [], problem.names))


def _plain(value: Any, name: str, problem: Problem) -> Any:
    """A scalar as data; dtypes by name."""
    if isinstance(value, torch.dtype):
        return dtype_name(value)
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise TaskError(f"input '{name}' is a {type(value).__name__}", where=problem.where,
                    remedy="inputs are tensors, numbers, strings, None, or tuples and dicts of them")  # fmt: skip


def _spec(name: str, leaf: Leaf, inferred: Inferred, kind: str) -> TensorSpec | None:
    if leaf.dtype not in DTYPES:
        raise Unsupported(f"tensor '{name}' has dtype {leaf.dtype}, which Tilewright does not know")
    shape = [inferred.shapes.get((kind, name, i)) for i in range(len(leaf.shape))]
    if any(s is None for s in shape):
        return None
    values = leaf.values if leaf.contiguous else Values(kind="custom", generator="get_inputs")
    if values.kind == "integers":
        values = values.model_copy(update={"high": inferred.shapes.get(("bound", name, 0), values.high)})
    buffer = unwritten(values)
    if buffer:
        values = Values(kind="constant", value=0.0)
    group = "main" if leaf.dtype not in (*INTEGERS, "bool") else f"fixed {leaf.dtype}"
    return TensorSpec(tuple(s for s in shape if s is not None), dtypes=(leaf.dtype,), values=values,
                      requires_grad=leaf.requires_grad, dtype_group=group, mutated=buffer)  # fmt: skip


__all__ = ["InferredSource", "Parts", "Problem", "infer_source", "seed_everything"]
