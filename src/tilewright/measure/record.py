"""What a measurement leaves behind, as data. Times are seconds, ratios are baseline time over kernel time (above 1: the
kernel is faster), hashes are sha256.

    Measurement            one kernel before one task on one machine
      ├── baselines        what it was held against, the wrong and the unavailable ones with their reasons
      └── workloads        one WorkloadResult each
            ├── floor      the least time the machine allows
            └── figures    one for each (cache, launch); the first one decides
                  ├── arms     samples of each arm, block by block
                  └── ratios   one a right baseline, with interval and answer
"""

from __future__ import annotations

from typing import Any, Literal

from ..task.tensors import Model

Answer = Literal["faster", "slower", "no measurable gain", "too noisy", "refused"]
Cache = Literal["warm", "cold"]
Launch = Literal["plain", "graph"]
Status = Literal["right", "wrong", "unavailable"]
Kind = Literal["eager", "compile", "max-autotune", "graph", "vendor", "peer", "file"]

CANDIDATE, TWIN = "candidate", "twin"
"""Names of two arms: the kernel, and the same kernel once more in a process of its own (the A/A run)."""


class Interval(Model):
    """A median with its bootstrap interval at confidence ``level``."""

    low: float
    median: float
    high: float
    level: float

    @property
    def half_width(self) -> float:
        """Half the interval, relative to the median."""
        return (self.high - self.low) / (2 * self.median) if self.median else float("inf")


class Arm(Model):
    """One timed thing at one workload in one state. ``blocks``: the timed calls of each block, by the deciding clock;
    ``cross``: the median of each block by the other clock; ``checked``: timed calls whose outputs were judged afterwards;
    ``peak_bytes``: most memory held during a call, ``extra_bytes``: what of it is neither input nor output; ``host``:
    seconds that the host takes to launch a call on a device, the median, by the timed process's own clock."""

    name: str
    blocks: tuple[tuple[float, ...], ...]
    cross: tuple[float, ...] = ()
    time: Interval | None = None
    checked: int = 0
    disturbed: int = 0
    peak_bytes: int | None = None
    extra_bytes: int | None = None
    joules: float | None = None
    host: float | None = None


class Ratio(Model):
    """Baseline over kernel: the median over blocks of the paired ratio, its interval, and how the block ratios vary."""

    baseline: str
    interval: Interval
    variation: float
    answer: Answer
    reason: str = ""


class Figure(Model):
    """One state of caches and one way to launch. ``noise``: half the width of the band around 1 that the A/A run leaves,
    at least the protocol's smallest effect; ``honest``: the fastest right baseline."""

    cache: Cache
    launch: Launch
    arms: tuple[Arm, ...]
    ratios: tuple[Ratio, ...] = ()
    null: Interval | None = None
    noise: float
    honest: str = ""
    answer: Answer
    reason: str = ""
    seconds: float = 0.0
    stopped: str = ""

    def arm(self, name: str) -> Arm | None:
        """The arm of that name."""
        return next((a for a in self.arms if a.name == name), None)

    def ratio(self, baseline: str = "") -> Ratio | None:
        """The ratio to a baseline, by default to the honest one."""
        return next((r for r in self.ratios if r.baseline == (baseline or self.honest)), None)


class Floor(Model):
    """The least time. ``bytes`` and ``flops`` are the task's compulsory work (``by``: whose word that is), ``bandwidth``
    and ``rate`` what this machine was measured to do in this run for that working set; ``fraction``: floor over time."""

    seconds: float
    bytes: int
    flops: int
    bandwidth: float
    rate: float
    bound: Literal["memory", "arithmetic", "unknown"]
    by: str = ""
    fraction: float | None = None


class WorkloadResult(Model):
    """One workload. ``figures[0]`` decides. Its dims are withheld in ``name`` while it is hidden and not yet spent."""

    name: str
    dims: dict[str, int]
    dtype: str = ""
    scalars: dict[str, Any] = {}
    kind: Literal["smoke", "develop", "hidden"] = "develop"
    figures: tuple[Figure, ...] = ()
    floor: Floor | None = None
    refusals: tuple[str, ...] = ()
    answer: Answer
    reason: str = ""

    @property
    def figure(self) -> Figure | None:
        """The deciding figure; None where nothing could be timed."""
        return self.figures[0] if self.figures else None


class Baseline(Model):
    """What the kernel is held against. ``reason``: why it is wrong or unavailable; ``by``: what showed that it is right."""

    name: str
    kind: Kind
    status: Status
    reason: str = ""
    by: str = ""
    compile_s: float | None = None
    verdict: str = ""
    path: str = ""


class Ceilings(Model):
    """What this machine was measured to do. ``read`` and ``copy``: bytes a second by working set in bytes (copied bytes
    count twice); ``rates``: operations a second by dtype; ``launch``: seconds of an empty call in the harness."""

    device: str
    name: str
    read: dict[int, float] = {}
    copy_: dict[int, float] = {}
    rates: dict[str, float] = {}
    launch: float | None = None
    cache_bytes: int = 0
    clocks: dict[str, Any] = {}
    method: str = ""
    measured: str = ""
    threads: int = 1


class Transfer(Model):
    """Whether a gain on the workloads that were shown holds on those that were not. ``rate``: share of hidden workloads on
    which the kernel is right and its gain is kept; ``cause`` where it is not: ``wrong beyond the shown workloads``,
    ``tuned to the shown workloads``, ``benign``."""

    shown: int
    hidden: int
    kept: int
    rate: float | None
    cause: str = ""
    spent: int = 0


class Measurement(Model):
    """The whole answer of ``bench``."""

    answer: Answer
    reason: str = ""
    kernel: str = ""
    kernel_sha256: str
    language: str = ""
    task: str = ""
    task_sha256: str
    contract: str = ""
    mode: Literal["default", "strict"] = "default"
    verdict: str = ""
    device: str = "cpu"
    device_class: str = "cpu"
    protocol: str
    protocol_version: str
    ratio: Interval | None = None
    noise: float = 0.0
    variation: float | None = None
    baselines: tuple[Baseline, ...] = ()
    workloads: tuple[WorkloadResult, ...] = ()
    transfer: Transfer | None = None
    ceilings: Ceilings | None = None
    state: dict[str, Any] = {}
    compile_s: float | None = None
    tune_s: float | None = None
    refusals: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    versions: dict[str, str] = {}
    seconds: float = 0.0
    created: str = ""
    id: str = ""

    @property
    def exit_code(self) -> int:
        """0 measured, 3 too noisy or refused (1, kernel not accepted, and 2, an error, never get so far)."""
        return 3 if self.void else 0

    @property
    def void(self) -> bool:
        """Whether it claims nothing: the ledger keeps it as an attempt, not as a measurement."""
        return self.answer in ("too noisy", "refused")
