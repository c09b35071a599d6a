"""flashinfer-bench Definition (JSON), with its workloads (JSONL) where they lie in the same trace set.

Format after flashinfer-bench (2026). A Solution is read by ``kernel/solution.py``.
"""

from __future__ import annotations

import hashlib
import json
import linecache
import math
from pathlib import Path
from typing import Any

import torch

from ...errors import TaskError, Unsupported
from ..calling import Calling
from ..contract import INFERRED
from ..overrides import Overrides
from ..task import TaskSheet, Workload, itemsize
from ..tensors import DTYPES, FLOATS, Dim, Scalar, TensorSpec, Values
from .declared import DeclaredSource
from .load import UserModule
from .safetensors import read_tensor
from .workloads import Budget, human

MOST = 1 << 13


def claims(path: Path, entry: str) -> bool:
    """A JSON file with ``axes`` and ``reference``."""
    if path.suffix != ".json" or not path.is_file():
        return False
    text = path.read_text(errors="replace")
    return '"axes"' in text and '"reference"' in text


class FlashInferSource(DeclaredSource):
    """A Definition as a source: random inputs are drawn, safetensors ones are read."""

    def __init__(self, sheet: TaskSheet, function: Any, path: Path, stored: dict[str, dict[str, Any]], root: Path):
        super().__init__(sheet, function, path, style="keywords")
        self.stored, self.root = stored, root

    def _custom(self, name: str, spec: TensorSpec, workload: Workload, seed: int) -> torch.Tensor:
        files = self.stored.get(str(workload.scalars.get("uuid", "")), {})
        if name not in files:
            raise TaskError(f"input '{name}' has no stored values for this workload", where=str(self.path),
                            remedy="use one of the trace set's workloads")  # fmt: skip
        return read_tensor(self.root / files[name]["path"], files[name]["tensor_key"])

    def calling(self, workload: Workload, seed: int) -> tuple[Calling, dict[str, torch.Tensor]]:
        return Calling(style="keywords", outputs=tuple(self._outputs(workload)), seed=seed), {}

    def _outputs(self, workload: Workload) -> list[dict[str, Any]]:
        return [{"name": n, "shape": list(s.sizes(workload.dims)), "dtype": s.dtypes[0]}
                for n, s in (self.sheet.outputs or {}).items()]  # fmt: skip


def read(path: Path, entry: str, overrides: Overrides, budget: Budget) -> FlashInferSource:
    """The definition as a source. Raises TaskError for a definition that is not lawful."""
    raw = path.read_bytes()
    try:
        data = json.loads(raw)
    except ValueError as e:
        raise TaskError(f"not JSON: {e}", where=str(path)) from None
    for key in ("name", "axes", "inputs", "outputs", "reference"):
        if key not in data:
            raise TaskError(f"the definition has no '{key}'", where=str(path))
    module = UserModule(path.with_suffix(".reference.py"), text=data["reference"])
    linecache.cache[str(module.path)] = (len(module.text), None, module.text.splitlines(True), str(module.path))
    run = module.execute().get("run")
    if not callable(run):
        raise TaskError("the definition's reference defines no function 'run'", where=str(path))
    root = next((p.parent for p in path.resolve().parents if p.name == "definitions"), path.resolve().parent)
    listed = _workloads(path, data["name"], root)
    sheet = overrides.apply(_sheet(path, data, listed, budget, hashlib.sha256(raw).hexdigest()))
    stored = {w["uuid"]: {n: i for n, i in w["inputs"].items() if i.get("type") == "safetensors"} for w in listed}
    return FlashInferSource(sheet, run, path, stored, root)


def _sheet(path: Path, data: dict[str, Any], listed: list[dict[str, Any]], budget: Budget, sha: str) -> TaskSheet:
    fixed = {n: int(a["value"]) for n, a in data["axes"].items() if a.get("type") == "const"}
    variable = [n for n, a in data["axes"].items() if a.get("type") == "var"]
    stored = {n for w in listed for n, i in w["inputs"].items() if i.get("type") == "safetensors"}
    notes: list[str] = []
    inputs: dict[str, Any] = {}
    for name, spec in data["inputs"].items():
        if spec.get("shape") is None:
            values = [w["inputs"][name]["value"] for w in listed if w["inputs"].get(name, {}).get("type") == "scalar"]
            inputs[name] = Scalar(*dict.fromkeys(values)) if values else Scalar(1.0 if spec["dtype"] in FLOATS else 1)
            continue
        inputs[name] = _tensor(spec, fixed, variable, path, name, stored=name in stored)
        if inputs[name].values.kind == "integers":
            notes.append(f"the definition does not say what range the integers of '{name}' have; [0, 128) is drawn")
    outputs = {n: _tensor(s, fixed, variable, path, n, stored=False) for n, s in data["outputs"].items()
               if s.get("shape") is not None}  # fmt: skip
    sizes = {n: [int(w["axes"][n]) for w in listed if n in w["axes"]] for n in variable}
    dims = {n: Dim(1, max([*s, 1]) if s else MOST) for n, s in sizes.items()}
    workloads, over = [], 0
    for w in listed:
        scalars = {n: i["value"] for n, i in w["inputs"].items() if i.get("type") == "scalar"}
        item = Workload(dims={n: int(v) for n, v in w["axes"].items()}, scalars={**scalars, "uuid": w["uuid"]})
        cost = _bytes((inputs, outputs), item)
        over = max(over, cost if cost > budget.bytes else 0)
        if cost <= budget.bytes:
            workloads.append(item)
    if over:
        notes.append(f"{len(listed) - len(workloads)} of {len(listed)} workloads not run here: up to {human(over)}")
    workloads = workloads or _small(dims, (inputs, outputs), budget)
    if not workloads:
        least = Workload(dims=dict.fromkeys(dims, 1), kind="smoke")
        cost = _bytes((inputs, outputs), least)
        notes.append(f"fixed axes alone take {human(cost)}; only the least sizes are run")
        workloads = [least] if cost <= budget.real_bytes else []
    given = max(listed, key=lambda w: math.prod(w["axes"].values()), default=None)
    return TaskSheet(
        name=data["name"], source="flashinfer_bench", path=str(path), files={path.name: sha}, entry="run",
        inputs=inputs, outputs=outputs, dims=dims, constraints=tuple(data.get("constraints") or ()),
        workloads=tuple(workloads), contract=INFERRED.model_copy(update={"identifier": data["name"]}),
        notes=tuple(notes),
        given=dict(given["axes"]) if given else {}, extra={"fixed": fixed, "op_type": data.get("op_type", "")},
    )  # fmt: skip


def _tensor(
    spec: dict[str, Any], fixed: dict[str, int], variable: list[str], path: Path, name: str, *, stored: bool
) -> TensorSpec:
    dtype = spec["dtype"]
    if dtype not in DTYPES:
        raise Unsupported(f"tensor '{name}' has dtype {dtype}, which Tilewright does not know", where=str(path))
    for axis in spec["shape"]:
        if axis not in fixed and axis not in variable:
            raise TaskError(f"tensor '{name}' names axis '{axis}', which is not in axes", where=str(path))
    values = (
        Values() if dtype in FLOATS else Values(kind="bool") if dtype == "bool" else Values(kind="integers", high=128)
    )
    if stored:
        values = Values(kind="custom", generator="safetensors")
    group = "main" if dtype in FLOATS else f"fixed {dtype}"
    return TensorSpec(tuple(fixed.get(a, a) for a in spec["shape"]), dtypes=(dtype,), values=values, dtype_group=group)


def _bytes(groups: tuple[dict[str, Any], ...], workload: Workload) -> int:
    return sum(math.prod(s.sizes(workload.dims)) * itemsize(s.dtypes[0])
               for group in groups for s in group.values() if isinstance(s, TensorSpec))  # fmt: skip


def _small(dims: dict[str, Dim], groups: tuple[dict[str, Any], ...], budget: Budget) -> list[Workload]:
    """Without listed workloads within budget: the largest power of two for all dims that fits."""
    for size in (128, 64, 32, 16, 8, 4, 2, 1):
        item = Workload(dims={n: min(size, d.high) for n, d in dims.items()})
        if _bytes(groups, item) <= budget.bytes:
            return [item]
    return []


def _workloads(path: Path, name: str, root: Path) -> list[dict[str, Any]]:
    """Workload records of this definition, in the order of the file."""
    places = [path.with_suffix(".jsonl"), *sorted((root / "workloads").rglob(f"{name}.jsonl"))]
    found: list[dict[str, Any]] = []
    for place in places:
        if not place.is_file():
            continue
        for number, line in enumerate(place.read_text().splitlines(), 1):
            if not line.strip():
                continue
            try:
                record = json.loads(line)
                workload = record.get("workload", record)
                if record.get("definition", name) == name and workload["axes"] is not None:
                    found.append(
                        {**workload, "inputs": workload.get("inputs", {}), "uuid": str(workload.get("uuid", number))}
                    )
            except (ValueError, KeyError, TypeError) as e:
                raise TaskError(f"not a workload: {e}", where=f"{place}:{number}") from None
    return found
