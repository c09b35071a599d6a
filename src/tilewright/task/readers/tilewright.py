"""Tilewright's task file: a Python file that defines ``TASK = Task(...)``."""

from __future__ import annotations

from pathlib import Path

from pydantic import ValidationError

from ...errors import TaskError
from ..overrides import Overrides
from ..task import Task
from ..tensors import TensorSpec
from .declared import DeclaredSource, audit, where_of
from .load import UserModule
from .workloads import Budget


def claims(path: Path, entry: str) -> bool:
    """A Python file that assigns ``TASK`` (or the name after ``::``, if it is all capitals)."""
    if path.suffix != ".py" or not path.is_file() or (entry and not entry.isupper()):
        return False
    name = entry or "TASK"
    return any(
        line.startswith((f"{name} =", f"{name}:", f"{name}=")) for line in path.read_text(errors="replace").splitlines()
    )


def read(path: Path, entry: str, overrides: Overrides, budget: Budget) -> DeclaredSource:
    """The task as a source. Raises TaskError for what is wrong in the file, with its line."""
    module = UserModule(path)
    try:
        namespace = module.execute()
    except TaskError as e:
        cause = e.__cause__
        if isinstance(cause, ValidationError):
            raise TaskError(f"the task is not lawful: {_first(cause)}", where=e.where,
                            detail=str(cause).split("\n    For further")[0]) from None  # fmt: skip
        raise
    task = namespace.get(entry or "TASK")
    if not isinstance(task, Task):
        raise TaskError(f"{entry or 'TASK'} is a {type(task).__name__}, not a Task", where=str(path),
                        remedy="TASK = Task(reference=..., inputs={...}, dims={...})")  # fmt: skip
    sheet = task.sheet(name=path.stem if path.stem != "problem" else path.resolve().parent.name, path=str(path),
                       files=dict(module.files))  # fmt: skip
    sheet = overrides.apply(sheet)
    for name, spec in sheet.inputs.items():
        if (
            isinstance(spec, TensorSpec)
            and spec.values.kind == "custom"
            and spec.values.generator not in task.generators
        ):
            wanted = spec.values.generator
            raise TaskError(f"input '{name}' names the generator '{wanted}', which the task lacks",
                            where=str(path), remedy=f"add generators={{'{wanted}': function}}")  # fmt: skip
    source = DeclaredSource(sheet, task.reference, path, generators=task.generators, laws=task.laws)
    audit(source, where_of(task.reference) or str(path))
    return source


def _first(error: ValidationError) -> str:
    first = error.errors()[0]
    place = ".".join(str(p) for p in first["loc"])
    return f"{place}: {first['msg']}" if place else str(first["msg"])
