"""Workloads within a budget: the given sizes if they fit, else smaller ones, and a note on what is not run."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ..task import Workload, itemsize
from ..tensors import evaluate
from .symbols import Inferred, OutOfTime, Prober
from .trial import Trial


@dataclass(frozen=True)
class Budget:
    """What one run of the reference may cost here. ``bytes``: inputs, state and outputs together. ``flops``: of
    matmuls and convolutions, which bound the time of the float64 oracle (about 1e9 a second and core).
    ``real_bytes``: what may be allocated where fake tensors don't reach, or where fixed sizes leave no smaller one.
    ``seconds``: for all trials. ``run_seconds``: for one run of the float64 oracle."""

    bytes: int = 8 << 20
    flops: int = 300_000_000
    real_bytes: int = 256 << 20
    seconds: float = 20.0
    run_seconds: float = 1.0

    def fits(self, trial: Trial, share: float = 1.0) -> bool:
        """Whether a run of this size is within ``share`` of the budget."""
        return trial.bytes <= self.bytes * share and trial.flops <= self.flops * share


def human(size: int) -> str:
    """``6442450944`` → ``6.4 GB``."""
    value = float(size)
    for unit in ("B", "kB", "MB", "GB"):
        if value < 1000:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:.1f} TB"


def choose(probe: Prober, inferred: Inferred, budget: Budget) -> tuple[tuple[Workload, ...], list[str]]:
    """A smoke and a develop workload, and notes on what is left out."""
    given = {n: s.value for n, s in inferred.symbols.items()}
    base, notes = inferred.base, []
    develop: dict[str, int] | None = given
    if not budget.fits(base):
        cost = human(base.bytes) + (f", {base.flops / 1e9:.1f} GFLOP" if base.flops > budget.flops else "")
        sizes = ", ".join(f"{n}={v}" for n, v in given.items())
        notes.append(f"given sizes{f' ({sizes})' if sizes else ''} not run here: {cost}")
        develop = _in_time(shrink, probe, inferred, given, budget) or _in_time(_least, probe, inferred, budget)
    if develop is None:
        notes.append(f"no smaller sizes were found within {human(budget.bytes)}; give workloads in contract.toml")
        return (), notes
    workloads = [Workload(dims=develop, kind="develop")]
    smoke = _in_time(shrink, probe, inferred, develop, budget, share=1 / 64)
    if smoke is not None and smoke != develop:
        workloads.insert(0, Workload(dims=smoke, kind="smoke"))
    return tuple(workloads), notes


def _in_time(search: Callable[..., dict[str, int] | None], *args: Any, **kwargs: Any) -> dict[str, int] | None:
    try:
        return search(*args, **kwargs)
    except OutOfTime:
        return None


def bytes_at(inferred: Inferred, dims: Mapping[str, int]) -> int:
    """Bytes of inputs, state and outputs at other sizes, by their expressions; an axis without one counts as given."""
    total, base = 0, inferred.base
    for kind, leaves in (("in", base.inputs), ("out", base.outputs), ("state", base.state)):
        for name, leaf in leaves.items():
            shape = []
            for axis, size in enumerate(leaf.shape):
                expression = inferred.shapes.get((kind, name, axis))
                shape.append(size if expression is None else evaluate(expression, dims))
            total += math.prod(shape) * itemsize(leaf.dtype)
    return total


def _least(probe: Prober, inferred: Inferred, budget: Budget) -> dict[str, int] | None:
    """The least sizes, if what is fixed makes even them exceed the budget but they can still be run."""
    sizes = {n: d.low for n, d in inferred.dims.items()}
    trial = probe(inferred.knobs(sizes))
    affordable = trial is not None and trial.bytes <= budget.real_bytes and trial.flops <= 10 * budget.flops
    return sizes if affordable else None


def shrink(
    probe: Prober, inferred: Inferred, start: Mapping[str, int], budget: Budget, share: float = 1.0
) -> dict[str, int] | None:
    """Halve the largest dims until the budget holds; None if they can't be made small enough."""
    sizes, stuck = dict(start), set[str]()
    trial = probe(inferred.knobs(sizes))
    while trial is not None and not budget.fits(trial, share):
        free = [n for n in sizes if n not in stuck and sizes[n] > inferred.dims[n].low]
        if not free:
            return None
        name = max(free, key=lambda n: sizes[n])
        dim = inferred.dims[name]
        half = max(dim.low, -(-(sizes[name] // 2) // dim.multiple_of) * dim.multiple_of)
        smaller = probe(inferred.knobs({**sizes, name: half})) if half < sizes[name] else None
        if smaller is None:
            stuck.add(name)
            continue
        sizes[name], trial = half, smaller
    return sizes if trial is not None else None
