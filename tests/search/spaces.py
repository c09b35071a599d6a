"""Made-up spaces with a known optimum, and runs over them."""

import itertools
import math

from tilewright.search import plugins, replay
from tilewright.search.budget import Budget
from tilewright.search.memory import Memory
from tilewright.search.run import Run
from tilewright.search.space import Space

VALUES = {"TILE": (8, 16, 32, 64, 128), "UNROLL": (1, 2, 4, 8), "LANES": (1, 2, 4, 8, 16)}
BEST = {"TILE": 64, "UNROLL": 4, "LANES": 8}
START = {"TILE": 8, "UNROLL": 1, "LANES": 1}


def ratio(at):
    """Largest at BEST; tiles and lanes depend on each other; large tiles unrolled much are wrong."""
    if at["TILE"] * at["UNROLL"] > 512:
        return None
    x = {n: math.log2(v / BEST[n]) for n, v in at.items()}
    return math.exp(
        2 - 0.15 * x["TILE"] ** 2 - 0.1 * x["UNROLL"] ** 2 - 0.12 * x["LANES"] ** 2 + 0.08 * x["TILE"] * x["LANES"]
    )


def grid(name="made up"):
    points = [dict(zip(VALUES, v, strict=True)) for v in itertools.product(*VALUES.values())]
    first = ratio(START)
    rows = [{"at": at, "ratio": ratio(at) / first} if ratio(at) else {"at": at, "failure": "wrong"} for at in points]
    return Space.of_grid(name, START, rows)


def run(space, strategy, trials, *, seed=0, book=None, spread=0.0, finalists=0, notify=None, options=None):
    evaluator = replay.Recorded(space, spread, seed)
    chosen = plugins.strategy(strategy, **options or {})
    return Run(book or Memory(), replay.subject(space), evaluator, chosen, replay.proposers(space), Budget(trials=trials),
               seed=seed, finalists=finalists, notify=notify)  # fmt: skip
