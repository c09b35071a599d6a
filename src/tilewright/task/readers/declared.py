"""Sources with a written contract: a task file, or a function whose inputs a contract file or annotations give."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch

from ...errors import TaskError
from .. import tree
from .. import values as drawing
from ..calling import Calling
from ..task import TaskSheet, Workload
from ..tensors import Scalar, TensorSpec
from . import observe
from .device import on_this_machine
from .load import user_code
from .oracle import as_dtype, in_dtype, widened


class DeclaredSource:
    """A ``Source`` over a function and a sheet. See ``Source`` for the methods.

    The reference is called by keyword where its parameters have the inputs' names, else by position.
    """

    def __init__(
        self, sheet: TaskSheet, function: Callable[..., Any], path: Path, *,
        generators: Mapping[str, Any] | None = None, laws: Mapping[str, Any] | None = None, style: str = "function",
    ):  # fmt: skip
        self.sheet, self.function, self.path = sheet, function, path
        self.generators, self.laws, self.style = dict(generators or {}), dict(laws or {}), style

    def inputs(self, workload: Workload, seed: int) -> dict[str, Any]:
        made: dict[str, Any] = {}
        generator = drawing.generator(seed)
        for name, spec in self.sheet.inputs.items():
            if isinstance(spec, Scalar):
                made[name] = workload.scalars.get(name, spec.values[0])
            elif spec.values.kind == "custom":
                made[name] = in_dtype(self._custom(name, spec, workload, seed), workload.dtype)
            else:
                dtype = workload.dtype if workload.dtype in spec.dtypes else spec.dtypes[0]
                made[name] = drawing.draw(spec, spec.sizes(workload.dims), dtype, generator, workload.dims)
        return made

    def _custom(self, name: str, spec: TensorSpec, workload: Workload, seed: int) -> torch.Tensor:
        make = self.generators.get(spec.values.generator or "")
        if make is None:
            raise TaskError(f"input '{name}' names the generator '{spec.values.generator}', which is not defined",
                            where=str(self.path), detail=f"defined: {', '.join(self.generators) or 'none'}",
                            remedy="add it to the task's generators")  # fmt: skip
        with user_code(self.path, f"generator '{spec.values.generator}'"), on_this_machine():
            torch.manual_seed(seed)
            value: torch.Tensor = make(dict(workload.dims), seed)
        if not isinstance(value, torch.Tensor) or tuple(value.shape) != spec.sizes(workload.dims):
            got = tuple(value.shape) if isinstance(value, torch.Tensor) else type(value).__name__
            raise TaskError(f"generator '{spec.values.generator}' gave {got} for input '{name}', "
                            f"expected shape {spec.sizes(workload.dims)}", where=str(self.path))  # fmt: skip
        return value

    def state(self, workload: Workload, seed: int) -> dict[str, torch.Tensor]:
        return {}

    def reference(
        self, inputs: dict[str, Any], workload: Workload, state: dict[str, torch.Tensor] | None, *,
        dtype: torch.dtype | None,
    ) -> Any:  # fmt: skip
        arguments = {k: as_dtype(v, dtype) for k, v in inputs.items()}
        with user_code(self.path, "the reference"), on_this_machine(), widened(dtype):
            out = call_by_name(self.function, arguments)
        if not any(isinstance(v, torch.Tensor) for v in tree.leaves(out).values()) and not self._mutates():
            raise TaskError(
                f"the reference returns no tensor (got {type(out).__name__})", where=where_of(self.function),
                remedy="return a tensor, or a tuple or dict with tensors",
            )  # fmt: skip
        return out

    def _mutates(self) -> bool:
        return any(isinstance(s, TensorSpec) and s.mutated for s in self.sheet.inputs.values())

    def calling(self, workload: Workload, seed: int) -> tuple[Calling, dict[str, torch.Tensor]]:
        return Calling(style="keywords" if self.style == "keywords" else "function", seed=seed), {}

    def check(self, inputs: dict[str, Any], outputs: Any) -> tuple[bool, str] | None:
        return None

    def law(self, name: str, run: Callable[..., Any], inputs: dict[str, Any]) -> bool:
        if name not in self.laws:
            raise TaskError(
                f"the task has no law '{name}'", where=str(self.path), detail=f"laws: {', '.join(self.laws)}"
            )
        with user_code(self.path, f"law '{name}'"):
            return bool(self.laws[name](run, inputs))


def audit(source: DeclaredSource, where: str) -> None:
    """Hold what a few real runs of the reference show against what its contract says.

    Raises TaskError where an author's contract is silent on randomness or on inputs written in place; an inferred
    contract takes them over.
    """
    sheet = source.sheet
    if not sheet.workloads:
        return
    seen = observe.observe(source, min(sheet.workloads, key=lambda w: math.prod(w.dims.values())), where)
    declared = {n for n, s in sheet.inputs.items() if isinstance(s, TensorSpec) and s.mutated}
    if not sheet.contract.inferred:
        if seen.random and not sheet.contract.random:
            raise TaskError("the reference draws random numbers, which its contract does not say", where=where,
                            remedy="write Contract(random=True, postcondition='distribution'), or seed it")  # fmt: skip
        for name in seen.mutated:
            if name not in declared:
                raise TaskError(f"the reference writes its input '{name}', which its contract does not say",
                                where=where, remedy="declare it with mutated=True, or clone it first")  # fmt: skip
        return
    contract = sheet.contract
    if seen.random:
        contract = contract.model_copy(update={"random": True, "postcondition": "distribution"})
    inputs = {n: v.model_copy(update={"mutated": True}) if n in seen.mutated else v for n, v in sheet.inputs.items()}
    source.sheet = sheet.model_copy(update={"contract": contract, "inputs": inputs})


def call_by_name(function: Callable[..., Any], inputs: Mapping[str, Any]) -> Any:
    """Call with the inputs under their names where the function has those, else by position."""
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):
        return function(*inputs.values())
    named = {n for n, p in parameters.items() if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}
    if any(p.kind is p.VAR_KEYWORD for p in parameters.values()) or set(inputs) <= named:
        return function(**inputs)
    return function(*inputs.values())


def where_of(function: Any) -> str | None:
    """``file:line`` of a function."""
    code = getattr(function, "__code__", None)
    return f"{code.co_filename}:{code.co_firstlineno}" if code else None
