"""What searches reach of the best of a scanned space: on the record, and live."""

from __future__ import annotations

import contextlib
import math
import random
import time
from pathlib import Path
from typing import Any

import numpy as np

from tilewright.api import open_ledger
from tilewright.errors import EnvironmentProblem
from tilewright.kernel import read as read_kernel
from tilewright.search import start, store
from tilewright.search.limits import limits
from tilewright.search.measured import Measured, Options
from tilewright.search.proposers._declared import read
from tilewright.search.proposers._samplers import SAMPLERS, Trial
from tilewright.search.space import Space
from tilewright.search.study import play, study
from tilewright.search.tree import Proposal

GOAL = 0.8
SHARE = 0.1
FEWEST = 3


def budget(points: int) -> int:
    """A tenth of the points as trials."""
    return max(FEWEST, int(points * SHARE))


def by_strategies(space: Space, names: list[str], seeds: int) -> dict[str, Any]:
    """``tilewright study`` at equal budget; speed reached over the best speed, mean over seeds."""
    trials = budget(len(space.entries))
    done = study([space], names, trials=trials, seeds=seeds)
    rows = {n: [math.exp(-play(space, n, trials, seed)[-1] * space.best) for seed in range(seeds)] for n in names}
    return {c.strategy: {**_shares(rows[c.strategy]), "mean regret": c.area, "interval": [c.area_low, c.area_high]}
            for c in done.curves}  # fmt: skip


def by_samplers(source: str, rows: list[dict[str, Any]], seeds: int) -> dict[str, Any]:
    """What the samplers of ``knobs`` reach, asked point by point."""
    found = {}
    for name in SAMPLERS:
        try:
            found[name] = _shares([_sampled(name, source, rows, seed) for seed in range(seeds)])
        except EnvironmentProblem as e:
            found[name] = {"left out": e.what}
    return found


def _sampled(name: str, source: str, rows: list[dict[str, Any]], seed: int) -> float:
    space, rng = read(source, "native"), random.Random(seed)
    score = {tuple(r["at"].items()): math.log(r["ratio"]) if "ratio" in r else None for r in rows}
    done = [Trial(space.now, 0.0)]
    for _ in range(budget(len(rows))):
        tried = [t.values for t in done]
        left = [r["at"] for r in rows if r["at"] not in tried]
        if not left:
            break
        point = SAMPLERS[name](space, left, done, rng)
        done.append(Trial(point, score[tuple(point.items())]))
    best = max(s for s in score.values() if s is not None)
    return math.exp(max(t.score for t in done if t.score is not None) - best)


def _shares(reached: list[float]) -> dict[str, Any]:
    return {"reached": float(np.mean(reached)), "worst": min(reached), "games": len(reached),
            "games at the goal": sum(r >= GOAL for r in reached)}  # fmt: skip


def live(
    problem: Path, kernel: Path, limit: tuple[str, ...], ledger: Path, strategy: str, gate_seconds: float
) -> dict[str, Any]:
    """One real search, gone on with if it was stopped; what it ended in."""
    asked = start.Request(str(problem), str(kernel), limit, strategy, ("knobs",),
                          options=Options(ledger=str(ledger), gate_seconds=gate_seconds))  # fmt: skip
    book = open_ledger(str(ledger))
    ended = [
        r
        for r in store.runs(book)
        if r.key == store.key_of(start.key_of(str(problem), read_kernel(str(kernel)))) and r.ended
    ]
    began = time.monotonic()
    if ended:
        tree, end, seconds = store.tree_of(book, ended[0].id), start.Conclusion(**ended[0].ended), None
    else:
        run, end = start.search(asked, resume=start.interrupted(book, str(problem), str(kernel)))
        tree, seconds = run.tree, time.monotonic() - began
    node = tree[end.node] if end.node is not None else tree.root
    failures = [n.failure.kind for n in tree if n.failure]
    return {"answer": end.words, "reason": end.reason, "trials": end.tried, "limit": list(limit), "strategy": strategy,
            "seconds": end.cost.seconds, "seconds of this process": seconds, "winner": end.node,
            "parameters": dict(read(node.source, "native").now), "failures": {k: failures.count(k) for k in set(failures)},
            "source": node.source}  # fmt: skip


def against_best(problem: Path, kernel: Path, best: str, found: str, ledger: Path, folder: Path,
                 gate_seconds: float) -> dict[str, Any]:  # fmt: skip
    """Both checked; then, by the protocol, time of the best known over time of what was found: 1 is as fast."""
    options = Options(ledger=str(ledger), gate_seconds=gate_seconds)
    with contextlib.closing(Measured(str(problem), read_kernel(str(kernel)), folder, options)) as evaluator:
        top, won = Proposal(source=best, proposer="scan"), Proposal(source=found, proposer="search")
        checked = evaluator.check(top, 0, limits([]))
        if not checked.accepted:
            return {"refused": f"the best of the scan is not accepted: {checked.failure and checked.failure.message}"}
        evaluator.begin(top, checked)
        if best == found:
            return {"ratio": 1.0, "low": 1.0, "high": 1.0, "same point": True}
        timed = evaluator.time(won, evaluator.check(won, 1, limits([])), full=True)
        if timed.timing is None:
            return {"refused": timed.failure.message if timed.failure else "not timed"}
        return {"ratio": timed.timing.ratio, "low": timed.timing.low, "high": timed.timing.high}
