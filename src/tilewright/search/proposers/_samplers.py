"""Which point of a declared space to try next, given the points that were tried. One function a way.

Each takes the points that are left, the trials so far (values and score, the log of a speed ratio; None where the trial
gained nothing) and a random generator, and returns one of the points.
"""

from __future__ import annotations

import importlib.util
import random
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...errors import EnvironmentProblem
from ..tree import Scalar
from ._declared import Space

Point = dict[str, Scalar]
FIRST = 6  # trials by chance before a model is believed


@dataclass(frozen=True)
class Trial:
    """A point that was tried; ``score`` is None where it was not accepted or not measured."""

    values: Point
    score: float | None


Sampler = Callable[[Space, Sequence[Point], Sequence[Trial], random.Random], Point]


def at_random(space: Space, left: Sequence[Point], trials: Sequence[Trial], rng: random.Random) -> Point:
    return rng.choice(left)


def in_order(space: Space, left: Sequence[Point], trials: Sequence[Trial], rng: random.Random) -> Point:
    return left[0]


def near(space: Space, left: Sequence[Point], trials: Sequence[Trial], rng: random.Random) -> Point:
    """One step along one parameter from the best point; by chance first, and once all neighbours are known."""
    right = [t for t in trials if t.score is not None]
    if len(right) < FIRST or rng.random() < 0.1:
        return rng.choice(left)
    best = max(right, key=lambda t: t.score or 0.0)
    nearest = min(steps(space, p, best.values) for p in left)
    return rng.choice([p for p in left if steps(space, p, best.values) == nearest])


def steps(space: Space, a: Point, b: Point) -> int:
    """How many positions in their lists of choices two points are apart, added up; words are one step apart."""
    n = 0
    for k in space.all:
        if isinstance(k.value, str):
            n += a[k.name] != b[k.name]
        else:
            n += abs(k.choices.index(a[k.name]) - k.choices.index(b[k.name]))
    return n


def additive(space: Space, left: Sequence[Point], trials: Sequence[Trial], rng: random.Random) -> Point:
    """The point with the best sum of its values' effects: ridge regression of the score on the chosen values, with the
    effects drawn from their posterior (Thompson sampling, 1933), so that what is little known is tried too."""
    right = [t for t in trials if t.score is not None]
    if len(right) < FIRST:
        return rng.choice(left)
    x = np.array([one_hot(space, t.values) for t in right])
    y = np.array([t.score for t in right], dtype=float)
    mean, spread = float(y.mean()), max(float(y.std()), 1e-6)
    precision = x.T @ x + np.eye(x.shape[1])
    weights = np.linalg.solve(precision, x.T @ ((y - mean) / spread))
    residual = float(np.sqrt(np.mean((x @ weights - (y - mean) / spread) ** 2)))
    draw = np.random.default_rng(rng.randrange(2**32)).multivariate_normal(
        weights, np.linalg.inv(precision) * max(residual, 0.05) ** 2
    )
    gains = np.array([one_hot(space, p) for p in left]) @ draw
    return left[int(np.argmax(gains))]


def one_hot(space: Space, values: Point) -> list[float]:
    return [float(values[k.name] == c) for k in space.all for c in k.choices]


def tpe(space: Space, left: Sequence[Point], trials: Sequence[Trial], rng: random.Random) -> Point:
    """Tree-structured Parzen estimator (Bergstra et al., 2011) by Optuna's ask and tell."""
    optuna = _optuna()
    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(
        n_startup_trials=FIRST, multivariate=True, seed=rng.randrange(2**32), constant_liar=True))  # fmt: skip
    spread = {k.name: optuna.distributions.CategoricalDistribution(k.choices) for k in space.all}
    states = optuna.trial.TrialState
    for t in trials:
        state = states.PRUNED if t.score is None else states.COMPLETE
        study.add_trial(optuna.trial.create_trial(
            state=state, value=t.score, params=dict(t.values), distributions=spread))  # fmt: skip
    open_ = {tuple(p.items()): p for p in left}
    for _ in range(64):
        asked = study.ask(spread).params
        if (found := open_.get(tuple((k.name, asked[k.name]) for k in space.all))) is not None:
            return found
    return near(space, left, trials, rng)


def _optuna() -> Any:
    if importlib.util.find_spec("optuna") is None:
        raise EnvironmentProblem("sampler=tpe needs Optuna, which is not installed",
                                 remedy="pip install 'tilewright[search]', or use sampler=additive")  # fmt: skip
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    warnings.filterwarnings("ignore", category=optuna.exceptions.ExperimentalWarning)
    return optuna


SAMPLERS: dict[str, Sampler] = {"random": at_random, "grid": in_order, "near": near, "additive": additive, "tpe": tpe}


def default() -> str:
    """TPE where Optuna is installed, else the additive model."""
    return "tpe" if importlib.util.find_spec("optuna") else "additive"
