"""Measuring the finalists, round by round, each round recorded; then the conclusion."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from .finalists import ROUNDS_MOST, Conclusion, Finalist, choose, conclude, rounds_least, summary, worth_a_round
from .store import Step
from .tree import Node

MISSED_MOST = 6
"""Rounds of a finalist that may fail to be timed (the machine was busy) before it is given up."""

if TYPE_CHECKING:
    from .run import Run


def finish(run: Run, known: Mapping[int, Step], step: int, stopped: str) -> Conclusion:
    """Choose the finalists (in step ``step``), give them rounds (a step each), conclude (in the last step)."""
    recorded = known.get(step, Step(step)).states.get("finals")
    chosen = choose(run.tree, run.finalists, run.evaluator.noise)
    if recorded is None:
        run.book.event(step, "finals", {"finalists": [n.number for n in chosen], "stopped": stopped})
        run.notify(run, "finals")
    else:
        chosen = [run.tree[n] for n in recorded["finalists"]]
    finalists = _rounds(run, known, step + 1, chosen) if chosen else []
    facts = {"kind": run.evaluator.kind, "level": run.level, "tried": len(run.tree) - 1, "stopped": stopped,
             "cost": run.cost.model_copy(update={"seconds": run.book.seconds()})}  # fmt: skip
    conclusion = conclude(finalists, run.evaluator.noise, **facts)
    run.book.event(step, "ended", conclusion.model_dump(mode="json"))
    run.notify(run, "ended")
    return conclusion


def _rounds(run: Run, known: Mapping[int, Step], step: int, chosen: list[Node]) -> list[Finalist]:
    """Rounds until all is clear, or the rounds or the time are used up (never fewer than can decide)."""
    alpha = (1 - run.level) / (2 * len(chosen))
    logs: dict[int, list[float]] = {n.number: [] for n in chosen}
    dropped: dict[int, str] = {}
    missed: dict[int, int] = {n.number: 0 for n in chosen}
    standing = [summary(n, [], alpha) for n in chosen]
    for number in range(ROUNDS_MOST):
        alive = [n for n, f in zip(chosen, standing, strict=True) if worth_a_round(f, run.evaluator.noise)]
        if not alive or (number >= rounds_least(alpha) and _late(run)):
            break
        results = _round(run, known.get(step + number), step + number, alive, number)
        for n, x in results["logs"].items():
            logs[int(n)].append(x)
        dropped |= {int(n): why for n, why in results["dropped"].items()}
        for m in results["missed"]:
            missed[m] += 1
            if missed[m] > MISSED_MOST:
                dropped[m] = f"unstable: {missed[m]} rounds could not be timed, {results['why']}"
        standing = [summary(n, logs[n.number], alpha, dropped.get(n.number, "")) for n in chosen]
    return standing


def _late(run: Run) -> bool:
    left = run.left().seconds
    return left is not None and left <= 0


def _round(run: Run, known: Step | None, step: int, alive: list[Node], number: int) -> dict[str, Any]:
    if known is not None and "final" in known.states:
        return known.states["final"]
    started = time.monotonic()
    found = run.evaluator.final_round(alive, number)
    faults = {n: x for n, x in found.items() if not isinstance(x, float)}
    busy = {n: x for n, x in faults.items() if x.kind == "unstable"}
    body: dict[str, Any] = {
        "logs": {str(n): x for n, x in found.items() if isinstance(x, float) and math.isfinite(x)},
        "dropped": {str(n): f"{x.kind}: {x.message}" for n, x in faults.items() if n not in busy},
        "missed": list(busy), "why": next((x.message for x in busy.values()), ""),
        "seconds": time.monotonic() - started,
    }  # fmt: skip
    run.book.event(step, "final", body)
    run.notify(run, "final")
    return body
