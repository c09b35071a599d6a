"""Strategies compared on the same recorded spaces at the same budget: regret after each trial, with intervals.

Regret after n trials: the share of the best known gain (log of the ratio) that is still missing; 1 at the start, 0 at the
best. Every strategy plays every space from the same seeds; intervals are a bootstrap over the games (B. Efron, 1979),
and two strategies are compared game by game, so that a space that is hard for all says nothing about either.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy

from ..errors import UserError
from ..task.tensors import Model
from . import plugins, replay
from .budget import Budget
from .memory import Memory
from .run import Run
from .space import Space
from .start import split

RESAMPLES = 2000
LEVEL = 0.95
NEAR = 0.05
"""A game has arrived when less than this share of the best gain is missing."""
YARDSTICK = "random"
Progress = Callable[[str, int, int], None]


class Curve(Model):
    """One strategy: mean regret after 0, 1, … trials with its interval; ``area`` is the mean over all trials."""

    strategy: str
    mean: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    area: float
    area_low: float
    area_high: float
    arrived: float
    trials_to_near: float | None
    games: int


class Versus(Model):
    """Area of ``strategy`` minus area of random, game by game: below 0 is better. ``clear``: the interval excludes 0."""

    strategy: str
    against: str
    difference: float
    low: float
    high: float
    clear: bool


class Study(Model):
    """All of it. ``spaces``: name, number of versions, best ratio. ``made``: whether any time in it was made up."""

    spaces: tuple[tuple[str, int, float], ...]
    budget: int
    seeds: int
    curves: tuple[Curve, ...]
    versus: tuple[Versus, ...]
    level: float = LEVEL
    kinds: tuple[str, ...] = ()


def play(space: Space, strategy: str, trials: int, seed: int) -> list[float]:
    """Regret after 0 … ``trials`` trials of one game. A game that runs out of versions keeps its last regret."""
    name, options = split(strategy)
    search = Run(Memory(), replay.subject(space), replay.Recorded(space), plugins.strategy(name, **options),
                 replay.proposers(space), Budget(trials=trials), seed=seed, finalists=0)  # fmt: skip
    search.go()
    return curve(search, space, trials)


def curve(search: Run, space: Space, trials: int) -> list[float]:
    """The regret of a finished game over its trials."""
    best, reached, row = space.best, 0.0, []
    for node in search.tree:
        reached = max(reached, node.score or 0.0)
        row.append(1 - reached / best)
    return (row + [row[-1]] * (trials + 1 - len(row)))[: trials + 1]


def study(spaces: Sequence[Space], strategies: Sequence[str], *, trials: int | None = None, seeds: int = 20,
          first_seed: int = 0, progress: Progress = lambda what, done, most: None) -> Study:  # fmt: skip
    """Play everything. ``trials``: default a third of the smallest space. Raises UserError for spaces without a gain."""
    for s in spaces:
        if s.best <= 0:
            raise UserError(f"nothing in '{s.name}' is faster than its start, so there is nothing to find there")
    budget = trials or max(5, min(s.trials for s in spaces) // 3)
    table: dict[str, numpy.ndarray] = {}
    for i, name in enumerate(strategies):
        progress(name, i, len(strategies))
        table[name] = numpy.array(
            [play(s, name, budget, seed) for s in spaces for seed in range(first_seed, first_seed + seeds)]
        )
    versus = [_versus(n, YARDSTICK, table) for n in table if n != YARDSTICK and YARDSTICK in table]
    return Study(
        spaces=tuple((s.name, len(s.entries), float(numpy.exp(s.best))) for s in spaces), budget=budget, seeds=seeds,
        curves=tuple(sorted((_curve(n, rows) for n, rows in table.items()), key=lambda c: c.area)), versus=tuple(versus),
        kinds=tuple(sorted({s.kind for s in spaces})),
    )  # fmt: skip


def _curve(name: str, rows: numpy.ndarray) -> Curve:
    low, high = _bounds(rows)
    areas = rows.mean(axis=1)
    area_low, area_high = _bounds(areas)
    near = [int(numpy.argmax(r <= NEAR)) for r in rows if (r <= NEAR).any()]
    half = len(near) * 2 >= len(rows)
    return Curve(
        strategy=name, mean=tuple(map(float, rows.mean(axis=0))), low=tuple(map(float, low)), high=tuple(map(float, high)),
        area=float(areas.mean()), area_low=float(area_low), area_high=float(area_high), games=len(rows),
        arrived=len(near) / len(rows), trials_to_near=float(numpy.median(near)) if half else None,
    )  # fmt: skip


def _versus(name: str, other: str, table: dict[str, numpy.ndarray]) -> Versus:
    differences = table[name].mean(axis=1) - table[other].mean(axis=1)
    low, high = map(float, _bounds(differences))
    return Versus(strategy=name, against=other, difference=float(differences.mean()), low=low, high=high,
                  clear=high < 0 or low > 0)  # fmt: skip


def _bounds(rows: numpy.ndarray) -> tuple[Any, Any]:
    """Percentile bootstrap of the mean over games."""
    drawn = numpy.random.default_rng(20_260).integers(0, len(rows), (RESAMPLES, len(rows)))
    weights = numpy.stack([numpy.bincount(d, minlength=len(rows)) for d in drawn]) / len(rows)
    means = weights @ rows
    tail = (1 - LEVEL) / 2
    return numpy.quantile(means, tail, axis=0), numpy.quantile(means, 1 - tail, axis=0)
