"""Task: what must be computed. Written by an author in a task file, or inferred by a reader.

A task file is Python: it defines ``TASK = Task(...)``. It is user code and is only ever imported inside a sealed
child; what the rest of Tilewright sees is a ``TaskSheet``, the same thing without callables.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, model_validator

from ..errors import TaskError
from .contract import Contract
from .tensors import Dim, Input, Model, Scalar, TensorSpec


class Workload(Model):
    """One concrete assignment of dims (and, if given, scalars and a dtype)."""

    dims: dict[str, int] = {}
    dtype: str | None = None
    scalars: dict[str, Any] = {}
    kind: Literal["smoke", "develop", "hidden"] = "develop"


class Work(Model):
    """Compulsory traffic and operations, as expressions over dims and ``itemsize`` (inputs read once, outputs written
    once)."""

    bytes: str | int
    flops: str | int = 0


class TaskSheet(Model):
    """A task as data. ``source`` is the reader's name; ``files`` maps file name to sha256 of what was read."""

    name: str
    source: Literal["tilewright", "kernelbench", "functions", "gpumode", "flashinfer_bench"] = "tilewright"
    path: str = ""
    files: dict[str, str] = {}
    entry: str = "reference"
    inputs: dict[str, TensorSpec | Scalar] = {}
    outputs: dict[str, TensorSpec] | None = None
    dims: dict[str, Dim] = {}
    constraints: tuple[str, ...] = ()
    workloads: tuple[Workload, ...] = ()
    contract: Contract = Contract()
    work: Work | None = None
    baselines: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    given: dict[str, int] = {}
    module_state: bool = False
    extra: dict[str, Any] = {}

    def sha256(self) -> str:
        """Identity: everything but where the files lie."""
        data = self.model_dump(mode="json", exclude={"path"})
        return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()


class Task(BaseModel):
    """A task file's ``TASK``.

    >>> import torch
    >>> task = Task(
    ...     reference=lambda x: torch.softmax(x, -1),
    ...     inputs={"x": TensorSpec("M N", dtypes=("float32", "float16"))},
    ...     dims={"M": Dim(1, 4096), "N": Dim(1, 65536)},
    ...     workloads=[{"M": 128, "N": 1000}],
    ... )
    >>> task.workloads[0].dims["N"]
    1000

    ``reference(**inputs)`` is PyTorch and works in any float dtype (it is run in float64 as the oracle). It returns a
    tensor, or a tuple or dict of tensors. ``laws`` maps a name to a function ``law(run, inputs) -> bool``, checked by
    the metamorphic gate: ``run(**changed)`` calls the kernel on ``inputs`` with some replaced (``task/laws.py`` has the
    protocol and ready-made laws). A law must hold for the reference too.
    ``generators`` are what ``Values(kind="custom")`` names.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)

    reference: Callable[..., Any]
    inputs: dict[str, TensorSpec | Scalar]
    dims: dict[str, Dim] = {}
    name: str = ""
    outputs: dict[str, TensorSpec] | None = None
    constraints: tuple[str, ...] = ()
    workloads: tuple[Workload, ...] = ()
    contract: Contract = Contract()
    work: Work | None = None
    baselines: tuple[str, ...] = ()
    laws: dict[str, Callable[..., Any]] = {}
    generators: dict[str, Callable[..., Any]] = {}

    @model_validator(mode="before")
    @classmethod
    def _plain_workloads(cls, data: Any) -> Any:
        """``{"M": 128}`` is short for ``Workload(dims={"M": 128})``."""
        if isinstance(data, dict) and "workloads" in data:
            data = dict(data)
            data["workloads"] = tuple(
                Workload(dims=dict(w)) if isinstance(w, Mapping) and all(isinstance(v, int) for v in w.values()) else w
                for w in data["workloads"]
            )
        return data

    @model_validator(mode="after")
    def _consistent(self) -> Task:
        for w in self.workloads:
            for name in w.dims:
                if name not in self.dims:
                    raise ValueError(f"workload names dim '{name}', which is not in dims {sorted(self.dims)}")
        return self

    def sheet(self, *, name: str, path: str, files: dict[str, str]) -> TaskSheet:
        """The task as data."""
        contract = self.contract.model_copy(update={"laws": tuple(self.laws)})
        return TaskSheet(
            name=self.name or name, path=path, files=files, inputs=dict(self.inputs), outputs=self.outputs,
            dims=self.dims, constraints=self.constraints, workloads=self.workloads, contract=contract, work=self.work,
            baselines=self.baselines,
        )  # fmt: skip


def tensors(inputs: Mapping[str, Input]) -> dict[str, TensorSpec]:
    """The tensor inputs of a task, by name."""
    return {k: v for k, v in inputs.items() if isinstance(v, TensorSpec)}


def itemsize(dtype: str) -> int:
    """Bytes of one element."""
    bits = {"bool": 8, "bfloat16": 16, "complex64": 64, "complex128": 128}.get(dtype)
    if bits is None:
        digits = "".join(c for c in dtype.split("_")[0] if c.isdigit())
        if not digits:
            raise TaskError(f"unknown dtype '{dtype}'")
        bits = int(digits)
    return bits // 8
