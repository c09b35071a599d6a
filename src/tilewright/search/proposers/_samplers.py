"""Which point of a declared space to try next, given the points that were tried. One function a way.

Each takes the points that are left, the trials so far (values and score, the log of a speed ratio; None where the trial
gained nothing) and a random generator, and returns one of the points.
"""

from __future__ import annotations

import importlib.util
import math
import random
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import EnvironmentProblem
from ..tree import Scalar
from ._declared import Space

Point = dict[str, Scalar]
FIRST = 6  # trials by chance before neighbours or Optuna are asked
BELIEVED = 4  # trials before the model is
POOL = 1024  # points that the model looks at
NOISE = 1e-2  # variance of a score that the model puts down to measurement, in units of its spread
Array = NDArray[np.float64]


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


def model(space: Space, left: Sequence[Point], trials: Sequence[Trial], rng: random.Random) -> Point:
    """The point with the largest expected improvement under a Gaussian process (Jones, Schonlau and Welch, 1998) over
    positions in the lists of choices, with a covariance of exp(-distance), the whole length of a list being one."""
    right = [t for t in trials if t.score is not None]
    if len(right) < BELIEVED:
        return rng.choice(left)
    pool = left if len(left) <= POOL else rng.sample(list(left), POOL)
    x, z = (np.array([place(space, p) for p in many]) for many in ([t.values for t in right], pool))
    y = np.array([t.score for t in right], dtype=float)
    y = (y - y.mean()) / max(float(y.std()), 1e-6)
    known, cross = _covariance(x, x) + NOISE * np.eye(len(x)), _covariance(z, x)
    solved = np.linalg.solve(known, np.c_[y, cross.T])
    mean = cross @ solved[:, 0]
    spread = np.sqrt(np.maximum(1 - np.einsum("ij,ji->i", cross, solved[:, 1:]), 1e-9))
    return pool[int(np.argmax(_improvement(mean, spread, float(y.max()))))]


def _covariance(a: Array, b: Array) -> Array:
    return np.exp(-np.abs(a[:, None, :] - b[None, :, :]).sum(-1))


def _improvement(mean: Array, spread: Array, best: float) -> Array:
    u = (mean - best) / spread
    below = 0.5 * (1 + np.array([math.erf(v / math.sqrt(2)) for v in u]))
    return spread * (u * below + np.exp(-u * u / 2) / math.sqrt(2 * math.pi))


def place(space: Space, values: Point) -> list[float]:
    """A point as coordinates: numbers by their position among the choices, words one axis each."""
    out: list[float] = []
    for k in space.all:
        if isinstance(k.value, str):
            out += [float(values[k.name] == c) / 2 for c in k.choices]
        else:
            out.append(k.choices.index(values[k.name]) / max(1, len(k.choices) - 1))
    return out


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
                                 remedy="pip install 'tilewright[search]', or use sampler=model")  # fmt: skip
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    warnings.filterwarnings("ignore", category=optuna.exceptions.ExperimentalWarning)
    return optuna


SAMPLERS: dict[str, Sampler] = {"random": at_random, "grid": in_order, "near": near, "model": model, "tpe": tpe}
