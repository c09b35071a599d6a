"""What was measured of an operator: one file for each (function, direction, workload), made from a measurement.

A file keeps medians and intervals of every arm, all ratios, the floor, who was wrong or not to be had and why, the machine
and the versions: enough to print and to compare, without the samples. Times in seconds, memory in bytes; ratios are baseline
over kernel, above 1 where the kernel is faster.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from ..errors import UserError
from ..measure.record import Baseline, Cache, Floor, Interval, Launch, Measurement, Ratio
from ..task.tensors import Model

DIRECTIONS = ("forward", "backward", "step")


class Arm(Model):
    """One timed thing. ``calls``: timed calls; ``checked``: those whose outputs were judged."""

    name: str
    time: Interval | None
    calls: int
    checked: int
    extra_bytes: int | None = None


class Figure(Model):
    """One state of caches and one way to launch, as in the measurement, without samples."""

    cache: Cache
    launch: Launch
    answer: str
    reason: str = ""
    honest: str = ""
    noise: float
    arms: tuple[Arm, ...] = ()
    ratios: tuple[Ratio, ...] = ()

    def ratio(self) -> Ratio | None:
        """The ratio to the fastest right baseline."""
        return next((r for r in self.ratios if r.baseline == self.honest), None)

    def time(self, name: str = "candidate") -> Interval | None:
        """An arm's time."""
        return next((a.time for a in self.arms if a.name == name), None)


class Evidence(Model):
    """One operator function, one direction, one workload, on one machine. ``figures[0]`` decides."""

    function: str
    direction: Literal["forward", "backward", "step"]
    workload: str
    dims: dict[str, int]
    dtype: str
    headline: bool = False
    answer: str
    reason: str = ""
    figures: tuple[Figure, ...] = ()
    floor: Floor | None = None
    baselines: tuple[Baseline, ...] = ()
    refusals: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    operator_sha256: str
    kernel_sha256: str
    task_sha256: str
    contract: str
    verdict: str
    protocol: str
    protocol_version: str
    device: str
    machine: dict[str, Any] = {}
    versions: dict[str, str] = {}
    seconds: float = 0.0
    created: str = ""

    @property
    def name(self) -> str:
        """``softmax.forward.M8192-N8192``, as its file is called."""
        return f"{self.function}.{self.direction}.{self.workload}"

    def figure(self, cache: str = "warm", launch: str = "plain") -> Figure | None:
        """The figure of one state."""
        return next((f for f in self.figures if (f.cache, f.launch) == (cache, launch)), None)


def slug(dims: Mapping[str, int]) -> str:
    """``M8192-N8192``."""
    return "-".join(f"{n}{v}" for n, v in dims.items())


def of(m: Measurement, function: str, direction: str, *, headline: bool, operator_sha256: str,
       versions: Mapping[str, str] | None = None) -> Evidence:  # fmt: skip
    """From a measurement of one workload. ``operator_sha256``: of the operator's kernel file; ``versions``: of packages
    that baselines came from. Raises UserError for a measurement of more than one workload."""
    if len(m.workloads) != 1:
        raise UserError(f"evidence is of one workload, this measurement has {len(m.workloads)}",
                        remedy="measure one workload at a time")  # fmt: skip
    (w,) = m.workloads
    gpu = m.state.get("before", {}).get("gpu", {})
    machine = {"name": m.ceilings.name if m.ceilings else m.device, "before": gpu,
               "after": m.state.get("after", {}).get("gpu", {})}  # fmt: skip
    figures = tuple(
        Figure(cache=f.cache, launch=f.launch, answer=f.answer, reason=f.reason, honest=f.honest, noise=f.noise,
               ratios=f.ratios, arms=tuple(_arm(a) for a in f.arms)) for f in w.figures
    )  # fmt: skip
    return Evidence(
        function=function, direction=direction, workload=slug(w.dims), dims=w.dims, dtype=w.dtype, headline=headline,  # type: ignore[arg-type]
        answer=m.answer, reason=m.reason, figures=figures, floor=w.floor, baselines=m.baselines, refusals=m.refusals,
        notes=m.notes, operator_sha256=operator_sha256, kernel_sha256=m.kernel_sha256, task_sha256=m.task_sha256,
        contract=m.contract, verdict=m.verdict, protocol=m.protocol, protocol_version=m.protocol_version,
        device=m.device, machine=machine, versions={**m.versions, **(versions or {})}, seconds=m.seconds,
        created=m.created,
    )  # fmt: skip


def _arm(a: Any) -> Arm:
    return Arm(name=a.name, time=a.time, calls=sum(len(b) for b in a.blocks), checked=a.checked,
               extra_bytes=a.extra_bytes)  # fmt: skip


def write(folder: Path, e: Evidence) -> Path:
    """Write one file; it replaces an older one of the same name whole or not at all."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{e.name}.json"
    half = path.with_suffix(".part")
    half.write_text(e.model_dump_json(indent=1) + "\n")
    half.replace(path)
    return path


def read(folder: Path) -> list[Evidence]:
    """All evidence of a folder, by function, direction and workload. Raises UserError for a file that is none."""
    found = []
    for path in sorted(folder.glob("*.json")):
        if not re.fullmatch(r"[a-z0-9_]+\.(forward|backward|step)\.[A-Za-z0-9_-]+", path.stem):
            continue
        try:
            found.append(Evidence.model_validate_json(path.read_text()))
        except ValueError as e:
            raise UserError(f"{path} is no evidence of an operator", detail=str(e).splitlines()[0],
                            remedy="delete it and run benchmarks/h200/ops/run.py again") from e  # fmt: skip
    return sorted(
        found, key=lambda e: (e.function, DIRECTIONS.index(e.direction), not e.headline, _size(e), e.workload)
    )


def _size(e: Evidence) -> int:
    return -(e.floor.bytes if e.floor else 0)
