"""Medians and their intervals: a percentile bootstrap over blocks, the level at which a run varies.

Within a block the calls of one arm are no independent samples (they share clock, cache state, neighbours), so a block
counts once, by the median of its calls. Sources: B. Efron, Bootstrap Methods, 1979; T. Kalibera and R. Jones, Rigorous
Benchmarking in Reasonable Time, 2013.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy

from .protocol import Protocol
from .record import Interval

SEED = 20_260
"""Of the resampling: the same samples give the same interval."""


def block_medians(blocks: Sequence[Sequence[float]]) -> numpy.ndarray:
    """The median of each block's calls."""
    return numpy.array([float(numpy.median(b)) for b in blocks], dtype=float)


def interval(values: Sequence[float] | numpy.ndarray, protocol: Protocol) -> Interval:
    """Median of one value a block, with its bootstrap interval."""
    x = numpy.asarray(values, dtype=float)
    low, high = _ends(_medians(x, protocol), protocol)
    middle = float(numpy.median(x))
    return Interval(low=min(low, middle), median=middle, high=max(high, middle), level=protocol.level)


def combined(ratios: Sequence[Sequence[float] | numpy.ndarray], protocol: Protocol) -> Interval:
    """Geometric mean over workloads of the median ratio; each workload's blocks are resampled apart."""
    logs = [numpy.log(numpy.asarray(r, dtype=float)) for r in ratios]
    middle = float(numpy.exp(numpy.mean([numpy.median(x) for x in logs])))
    drawn = numpy.exp(numpy.mean([_medians(x, protocol, SEED + i) for i, x in enumerate(logs)], axis=0))
    low, high = _ends(drawn, protocol)
    return Interval(low=min(low, middle), median=middle, high=max(high, middle), level=protocol.level)


def paired(candidate: Sequence[Sequence[float]], baseline: Sequence[Sequence[float]]) -> numpy.ndarray:
    """Ratio of each block: baseline over candidate."""
    return block_medians(baseline) / block_medians(candidate)


def variation(ratios: Sequence[float] | numpy.ndarray) -> float:
    """Coefficient of variation of the block ratios."""
    x = numpy.asarray(ratios, dtype=float)
    return float(x.std(ddof=1) / x.mean()) if len(x) > 1 else 0.0


def _medians(x: numpy.ndarray, protocol: Protocol, seed: int = SEED) -> numpy.ndarray:
    drawn = numpy.random.default_rng(seed).integers(0, len(x), (protocol.resamples, len(x)))
    return numpy.median(x[drawn], axis=1)


def _ends(medians: numpy.ndarray, protocol: Protocol) -> tuple[float, float]:
    tail = (1 - protocol.level) / 2
    low, high = numpy.quantile(medians, [tail, 1 - tail])
    return float(low), float(high)
