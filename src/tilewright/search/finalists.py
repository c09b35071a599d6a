"""The last word of a search: its fastest few, measured again on workloads that no proposer saw.

Why again: the fastest of many noisy times is fastest partly by luck, so its own time flatters it. Rounds are drawn
afresh, in fresh processes, on hidden workloads; nothing that chose the finalists enters the test.

The test: in each round the yardstick and a finalist run in pairs whose order is drawn by coin; x is the log of their
ratio over all hidden workloads. If a finalist is not faster than by the margin m, x falls above log(1+m) in at most half
the rounds, whatever the noise looks like. Betting against that with stakes spread evenly over (1/2, 1) gives an
e-process, and an e-process exceeds 1/a with probability at most a however often one looks (Ville's inequality), so the
rounds may stop as soon as the answer is clear. The same test for every margin at once gives the interval of the median.

Sources: J. Ville, Étude critique de la notion de collectif, 1939; H. Robbins, Statistical methods related to the law of
the iterated logarithm, 1970; S. Howard and A. Ramdas, Sequential estimation of quantiles with applications to A/B testing
and best-arm identification, 2022; the correction for several finalists is Bonferroni's: each side of each interval gets
``(1 - level) / (2 · finalists)``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

from ..task.tensors import Model
from .tree import Cost, Node, Tree

NOT_BEGUN = "it could not begin"
METHOD = "sign e-process on paired log ratios, Bonferroni over the finalists (Howard and Ramdas 2022)"
ROUNDS_MOST = 40
PRECISE = 0.05
"""A winner's interval narrower than this share is not worth another round."""


class Finalist(Model):
    """One finalist: rounds so far, median ratio of the yardstick's time over its time, with interval."""

    number: int
    rounds: int
    ratio: float
    low: float
    high: float
    developed: float
    dropped: str = ""


class Conclusion(Model):
    """How a run ended. ``tried``: trials of the run; ``node``: the winner, where there is one; ``kind``: how the times
    came about (measured, replayed, synthetic)."""

    answer: Literal["faster", "no measurable gain"]
    reason: str
    kind: str = "measured"
    node: int | None = None
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    level: float = 0.95
    margin: float = 0.0
    tried: int = 0
    finalists: tuple[Finalist, ...] = ()
    method: str = METHOD
    stopped: str = ""
    cost: Cost = Cost()

    @property
    def words(self) -> str:
        """``faster by 1.84x (1.79 to 1.88)``, ``no measurable gain``, or ``not begun``."""
        if self.stopped == NOT_BEGUN:
            return "not begun"
        if self.answer == "faster" and self.ratio and self.low:
            high = "no bound yet" if self.high is None or math.isinf(self.high) else f"{self.high:.3g}"
            return f"faster by {self.ratio:.3g}x ({self.low:.3g} to {high})"
        return self.answer


def e_value(above: int, below: int) -> float:
    """Evidence against "at most half of all rounds fall above", after so many above and below.

    2^(n+1) · B(above+1, below+1) · P(Binomial(n+1, 1/2) ≤ above), the mixture of all stakes on (1/2, 1).
    """
    n = above + below
    tail = sum(math.comb(n + 1, k) for k in range(above + 1))
    return tail / ((n + 1) * math.comb(n, above))


def interval(logs: Sequence[float], alpha: float) -> tuple[float, float]:
    """Bounds of the median of ``logs``, each side wrong with probability at most ``alpha``, at any time of stopping.

    Infinite where the rounds are too few to say.
    """
    ordered, n = sorted(logs), len(logs)
    sure = [k for k in range(n) if e_value(n - k, k) >= 1 / alpha]
    if not sure:
        return -math.inf, math.inf
    return ordered[max(sure)], ordered[n - 1 - max(sure)]


def rounds_least(alpha: float) -> int:
    """Rounds below which no answer is possible."""
    return next(n for n in range(1, 1000) if e_value(n, 0) >= 1 / alpha)


def choose(tree: Tree, limit: int, noise: float) -> list[Node]:
    """The few that are surest to be fast on the workloads of the search: by the lower end of their interval, since a wide
    one with a high middle is mostly luck."""
    fast = [n for n in tree.ranked() if n.number != 0 and (n.score or 0.0) > math.log1p(noise)]
    return sorted(fast, key=lambda n: (-n.timing.low if n.timing else 0.0, n.number))[:limit]


def summary(node: Node, logs: Sequence[float], alpha: float, dropped: str = "") -> Finalist:
    """Where a finalist stands."""
    low, high = interval(logs, alpha)
    middle = sorted(logs)[len(logs) // 2] if len(logs) % 2 else sum(sorted(logs)[len(logs) // 2 - 1 :][:2]) / 2
    return Finalist(number=node.number, rounds=len(logs), ratio=math.exp(middle) if logs else 1.0, low=_exp(low),
                    high=_exp(high), developed=node.timing.ratio if node.timing else 1.0, dropped=dropped)  # fmt: skip


def worth_a_round(finalist: Finalist, margin: float) -> bool:
    """Whether another round could change the answer, or make a wide interval of a winner narrower."""
    if finalist.dropped or finalist.high <= 1 + margin:
        return False
    return finalist.low <= 1 + margin or finalist.high / finalist.low > 1 + PRECISE


def conclude(finalists: Sequence[Finalist], margin: float, **facts: object) -> Conclusion:
    """The answer: the finalist with the largest median among those whose whole interval lies beyond the margin."""
    proved = [f for f in finalists if not f.dropped and f.low > 1 + margin]
    if not proved:
        why = _why(finalists, margin, facts.get("tried"))
        return Conclusion(answer="no measurable gain", reason=why, finalists=tuple(finalists),
                          margin=margin, **facts)  # type: ignore[arg-type]  # fmt: skip
    best = max(proved, key=lambda f: f.ratio)
    high = best.high if math.isfinite(best.high) else None
    where = "on hidden workloads, in fresh processes" if facts.get("kind") == "measured" else "of recorded times"
    return Conclusion(answer="faster", node=best.number, ratio=best.ratio, low=best.low, high=high, margin=margin,
                      reason=f"{best.rounds} rounds {where}", finalists=tuple(finalists), **facts)  # type: ignore[arg-type]  # fmt: skip


def not_begun(why: str, kind: str = "measured") -> Conclusion:
    """The end of a run whose first kernel could not even be judged."""
    return Conclusion(answer="no measurable gain", reason=why, kind=kind, stopped=NOT_BEGUN)


def _why(finalists: Sequence[Finalist], margin: float, tried: object = None) -> str:
    if not finalists and tried == 0:
        return "no trial fitted into the budget, so nothing was compared: give it more"
    if not finalists:
        return "no trial was faster than the start by more than the noise"
    if all(f.dropped for f in finalists):
        return f"every finalist was dropped: #{finalists[0].number}, {finalists[0].dropped}"
    f = max((f for f in finalists if not f.dropped), key=lambda f: f.ratio)
    found = f"{f.ratio:.3g}x on hidden workloads after {f.rounds} rounds, {f.developed:.3g}x on those of the search"
    if math.isinf(f.high) or f.low == 0:
        return f"#{f.number}: {found}; too few rounds for an interval"
    return f"#{f.number}: {found}, interval {f.low:.3g} to {f.high:.3g} does not clear {1 + margin:.3g}"


def _exp(x: float) -> float:
    return math.exp(x) if math.isfinite(x) else (0.0 if x < 0 else math.inf)
