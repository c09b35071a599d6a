"""KernelBench file: ``class Model(nn.Module)``, ``get_inputs()``, ``get_init_inputs()``; the kernel is ``ModelNew``.

Format after KernelBench (Ouyang et al., 2025). The model runs as constructed (training mode), under one seed.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ...errors import TaskError
from .. import tree
from ..overrides import Overrides
from ..task import TaskSheet
from . import modules
from .inferred import InferredSource, Problem, infer_source
from .load import UserModule, user_code
from .trial import Parts
from .workloads import Budget


def claims(path: Path, entry: str) -> bool:
    """A Python file with a class ``Model`` (or the class named by ``entry``) and ``get_inputs``."""
    if path.suffix != ".py" or not path.is_file():
        return False
    text = path.read_text(errors="replace")
    return f"class {entry or 'Model'}(" in text or (f"class {entry or 'Model'}:" in text)


class KernelBench(Problem):
    """The file as a subject: its knobs are its integer constants."""

    style = "module"

    def __init__(self, module: UserModule, entry: str = "Model"):
        for name in (entry, "get_inputs"):
            if not module.defines(name):
                raise TaskError(
                    f"{module.path.name} defines no '{name}'", where=str(module.path),
                    remedy="a KernelBench file defines class Model, get_inputs() and get_init_inputs()",
                )  # fmt: skip
        self.module, self.entry, self.path = module, entry, module.path
        line = next((n.lineno for n in module.tree.body if getattr(n, "name", "") == entry), 1)
        self.where = f"{module.path}:{line}"
        self.knobs = {k: c.value for k, c in module.constants.items()}
        self.knob_names = {k: c.name for k, c in module.constants.items()}
        self.skeleton: list[Any] | None = None
        self.names: list[str] = []

    def parts(self, values: Mapping[str, int], seed: int) -> Parts:
        namespace = self.module.execute(values)
        model, path = namespace[self.entry], self.path

        def inputs() -> dict[str, Any]:
            with user_code(path, "get_inputs()"):
                made = namespace["get_inputs"]()
            if not isinstance(made, list | tuple):
                made = [made]
            self.names = self.names or parameters(model.forward, skip=1)
            if self.skeleton is None:
                self.skeleton = tree.map_leaves(lambda v: None, list(made))
            return tree.flatten_arguments(made, self.names)

        def init() -> Any:
            with user_code(path, "get_init_inputs()"):
                return namespace["get_init_inputs"]() if "get_init_inputs" in namespace else []

        def build() -> Any:
            arguments = init()
            with user_code(path, f"{self.entry}()"):
                return modules.construct(model, arguments, seed)

        def run(built: Any, leaves: dict[str, Any]) -> Any:
            arguments = tree.unflatten_arguments(leaves, self.skeleton or [], self.names)
            with user_code(path, "the reference"):
                return built(*arguments)

        return Parts(inputs, build, run, init)


def parameters(function: Any, skip: int = 0) -> list[str]:
    """Names of positional parameters."""
    try:
        found = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return []
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return [p.name for p in found if p.kind in kinds][skip:]


def read(path: Path, entry: str, overrides: Overrides, budget: Budget) -> InferredSource:
    """The problem as a source. Raises TaskError with the user's own line."""
    module = UserModule(path)
    problem = KernelBench(module, entry or "Model")
    sheet = TaskSheet(name=path.stem, source="kernelbench", path=str(path), entry=problem.entry)
    source = infer_source(problem, sheet, budget)
    source.sheet = overrides.apply(source.sheet.model_copy(update={"files": dict(module.files)}))
    return source
