"""Fitting a policy on recorded trees, offline: the record of finished searches is a simulator in which a policy can be
tried at no cost, as often as one likes, before it is used in a search that costs something.

Method: the cross-entropy method (R. Rubinstein, 1999) over the weights of ``strategies/learned.py``; a policy's worth is
its mean area under the regret curve over all games, the same games for all. The incumbent takes part in every
generation and is replaced only by what is better, so the score on the record can't fall. After Dream-RSI (T. Zheng et
al., Dream-RSI: Recursive Self-Improvement through Evolving Worlds, 2026), which revises programs where this fits numbers.

What is fitted is judged on spaces (or, with a single one, on seeds) that took no part in the fit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy

from ..task.tensors import Model
from . import replay
from .budget import Budget
from .memory import Memory
from .run import Run
from .space import Space
from .strategies import learned
from .study import curve

POPULATION, ELITE, GENERATIONS = 16, 4, 6
SEEDS = 6
FIRST_SEED = 10_000
"""Seeds of the fit; a study plays from 0 on, so that no game is both."""
SPREAD = 1.5


class Policy(Model):
    """Fitted weights. ``before`` and ``after``: mean area on the games of the fit, with the default weights and with
    these; ``spaces``: names of those that took part."""

    weights: dict[str, float]
    before: float
    after: float
    spaces: tuple[str, ...]
    trials: int
    seed: int = 0
    games: int = 0


def fit(spaces: Sequence[Space], trials: int, *, seed: int = 0, generations: int = GENERATIONS,
        progress: Callable[[int, int], None] = lambda done, most: None) -> Policy:  # fmt: skip
    """Weights with the least mean area over ``spaces``."""
    rng = numpy.random.default_rng(seed)
    names = list(learned.FEATURES)
    mean, spread = numpy.array([learned.DEFAULT[n] for n in names]), numpy.full(len(names), SPREAD)
    best, worth = mean, area(dict(zip(names, mean, strict=True)), spaces, trials)
    before = worth
    for generation in range(generations):
        progress(generation, generations)
        drawn = [best, *(rng.normal(mean, spread) for _ in range(POPULATION - 1))]
        scored = [worth, *(area(dict(zip(names, map(float, w), strict=True)), spaces, trials) for w in drawn[1:])]
        order = numpy.argsort(scored, kind="stable")
        elite = numpy.array([drawn[i] for i in order[:ELITE]])
        mean, spread = elite.mean(axis=0), elite.std(axis=0) + 0.1
        best, worth = drawn[order[0]], scored[order[0]]
    return Policy(weights={n: round(float(w), 4) for n, w in zip(names, best, strict=True)}, before=before, after=worth,
                  spaces=tuple(s.name for s in spaces), trials=trials, seed=seed, games=len(spaces) * SEEDS)  # fmt: skip


def area(weights: dict[str, float], spaces: Sequence[Space], trials: int) -> float:
    """Mean regret over all trials and games of the policy with these weights."""
    rows = []
    for space in spaces:
        for seed in range(FIRST_SEED, FIRST_SEED + SEEDS):
            search = Run(Memory(), replay.subject(space), replay.Recorded(space), learned.Strategy(weights),
                         replay.proposers(space), Budget(trials=trials), seed=seed, finalists=0)  # fmt: skip
            search.go()
            rows.append(numpy.mean(curve(search, space, trials)))
    return float(numpy.mean(rows))


def halves(spaces: Sequence[Space]) -> tuple[list[Space], list[Space]]:
    """Spaces to fit on and spaces to judge on: every other one. A single space is both (its seeds differ)."""
    return (list(spaces), list(spaces)) if len(spaces) < 2 else (list(spaces[::2]), list(spaces[1::2]))
