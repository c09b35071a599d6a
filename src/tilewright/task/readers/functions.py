"""A function ``file.py::function``; its inputs from ``get_inputs()`` beside it, annotations, or a contract file.

Three ways, the first that is there:

* a contract file (``ref.contract.toml``) with ``[inputs.x]`` tables;
* annotations: ``def f(x: TensorSpec("M N"), y: "float16[N]")``;
* ``example_inputs()`` or ``get_inputs()`` in the file, then the contract is inferred as for KernelBench files.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ...errors import TaskError
from .. import tree
from ..contract import INFERRED
from ..overrides import Overrides
from ..task import TaskSheet, Workload
from ..tensors import DTYPES, Dim, Scalar, TensorSpec, Values
from .declared import DeclaredSource, audit
from .inferred import InferredSource, Problem, infer_source
from .kernelbench import parameters
from .load import UserModule, user_code
from .trial import Parts
from .workloads import Budget

MAKERS = ("example_inputs", "get_inputs")
_ANNOTATION = re.compile(r"\s*(?:Tensor|(?P<dtype>\w+))?\s*\[(?P<shape>[^\]]*)\]\s*$")


def claims(path: Path, entry: str) -> bool:
    """A Python file with a function name after ``::``."""
    return bool(entry) and path.suffix == ".py" and path.is_file()


class FunctionProblem(Problem):
    """A function with a maker of example inputs, as a subject."""

    style = "function"

    def __init__(self, module: UserModule, entry: str, maker: str, line: int):
        self.module, self.entry, self.maker, self.path = module, entry, maker, module.path
        self.where = f"{module.path}:{line}"
        self.knobs = {k: c.value for k, c in module.constants.items()}
        self.knob_names = {k: c.name for k, c in module.constants.items()}
        self.skeleton: list[Any] | None = None
        self.names: list[str] = []

    def parts(self, values: Mapping[str, int], seed: int) -> Parts:
        namespace = self.module.execute(values)
        function = namespace[self.entry]

        def inputs() -> dict[str, Any]:
            with user_code(self.path, f"{self.maker}()"):
                made = namespace[self.maker]()
            names = self.names or parameters(function)
            if isinstance(made, dict):
                names, made = list(made), list(made.values())
            elif not isinstance(made, list | tuple):
                made = [made]
            self.names = names
            if self.skeleton is None:
                self.skeleton = tree.map_leaves(lambda v: None, list(made))
            return tree.flatten_arguments(made, names)

        def run(_: Any, leaves: dict[str, Any]) -> Any:
            with user_code(self.path, "the reference"):
                return function(*tree.unflatten_arguments(leaves, self.skeleton or [], self.names))

        return Parts(inputs, lambda: None, run)


def read(path: Path, entry: str, overrides: Overrides, budget: Budget) -> Any:
    """The function as a source. Raises TaskError that shows the few lines to write where inputs can't be known."""
    module = UserModule(path)
    if not module.defines(entry):
        functions = [n.name for n in module.tree.body if type(n).__name__ == "FunctionDef"]  # type: ignore[attr-defined]
        raise TaskError(
            f"{path.name} defines no '{entry}'", where=str(path), detail=f"functions: {', '.join(functions)}"
        )
    line = next((n.lineno for n in module.tree.body if getattr(n, "name", "") == entry), 1)
    sheet = TaskSheet(name=entry, source="functions", path=str(path), entry=entry)
    maker = next((m for m in MAKERS if module.defines(m)), None)
    if "inputs" not in overrides.data and maker is not None:
        source = infer_source(FunctionProblem(module, entry, maker, line), sheet, budget)
        source.sheet = overrides.apply(source.sheet.model_copy(update={"files": dict(module.files)}))
        return source
    namespace = module.execute()
    declared = _declared(namespace[entry], sheet, overrides, f"{path}:{line}")
    declared = declared.model_copy(update={"files": dict(module.files)})
    generators = {k: v for k, v in namespace.items() if callable(v)}
    result = DeclaredSource(declared, namespace[entry], path, generators=generators)
    audit(result, f"{path}:{line}")
    return result


def _declared(function: Any, sheet: TaskSheet, overrides: Overrides, where: str) -> TaskSheet:
    """A sheet from annotations and the contract file."""
    inputs = _annotated(function)
    names = parameters(function)
    sheet = sheet.model_copy(
        update={"contract": INFERRED.model_copy(update={"identifier": sheet.name}), "inputs": inputs}
    )
    sheet = overrides.apply(sheet, new_names=True)
    missing = [n for n in names if n not in sheet.inputs and inspect.signature(function).parameters[n].default
               is inspect.Parameter.empty]  # fmt: skip
    if missing or not sheet.inputs:
        raise TaskError(f"nothing says what the inputs of '{sheet.entry}' are: {', '.join(missing) or 'it has none'}",
                        where=where, remedy=_lines(missing or ["x"], Path(sheet.path)))  # fmt: skip
    ordered = {n: sheet.inputs[n] for n in [*names, *sheet.inputs] if n in sheet.inputs}
    used = _symbols(ordered, sheet)
    dims = {n: sheet.dims.get(n, Dim()) for n in used}
    workloads = sheet.workloads or (Workload(dims={n: _middle(d) for n, d in dims.items()}),)
    for workload in workloads:
        if set(workload.dims) != set(dims):
            raise TaskError(f"workload {workload.dims} must give each dim a size", where=overrides.where or where,
                            detail=f"dims: {', '.join(dims)}")  # fmt: skip
    return sheet.model_copy(update={"inputs": ordered, "dims": dims, "workloads": workloads})


def _symbols(inputs: Mapping[str, Any], sheet: TaskSheet) -> list[str]:
    names = list(sheet.dims)
    for spec in inputs.values():
        if isinstance(spec, TensorSpec):
            for axis in (*spec.shape, spec.values.low, spec.values.high):
                if isinstance(axis, str):
                    names += [n for n in re.findall(r"[A-Za-z_]\w*", axis) if n not in ("min", "max")]
    return list(dict.fromkeys(names))


def _middle(dim: Dim) -> int:
    """A size to start from: 64 or the nearest that the dim allows."""
    if dim.sizes:
        return dim.sizes[len(dim.sizes) // 2]
    size = min(max(64, dim.low), dim.high)
    return max(dim.low, size - size % dim.multiple_of) or dim.multiple_of


def _annotated(function: Any) -> dict[str, Any]:
    """Specs in annotations: ``TensorSpec``, ``Scalar``, or text such as ``"float16[M, N]"`` and ``"[M, N]"``."""
    found: dict[str, Any] = {}
    for name, parameter in inspect.signature(function).parameters.items():
        note = parameter.annotation
        if isinstance(note, TensorSpec | Scalar):
            found[name] = note
        elif isinstance(note, str) and (match := _ANNOTATION.match(note.strip("'\""))):
            dtype = match["dtype"] or "float32"
            if dtype in DTYPES:
                shape = " ".join(s.replace(" ", "") for s in match["shape"].split(",") if s.strip())
                values = Values() if dtype.startswith(("float", "bf", "complex")) else Values(kind="integers", high=2)
                found[name] = TensorSpec(shape, dtypes=(dtype,), values=values)
        elif note in (int, float, bool) and isinstance(parameter.default, int | float):
            found[name] = Scalar(parameter.default)
    return found


def _lines(names: list[str], path: Path) -> str:
    """The few lines to write."""
    tables = "\n".join(f'    [inputs.{n}]\n    shape = "M N"\n    dtypes = ["float32"]' for n in names)
    made = ", ".join("torch.randn(128, 256)" for _ in names)
    return (
        f"write {path.stem}.contract.toml beside it:\n{tables}\n    [[workloads]]\n    dims = {{ M = 128, N = 256 }}\n"
        f"or add to {path.name}:\n    def get_inputs():\n        return [{made}]"
    )


__all__ = ["InferredSource", "claims", "read"]
