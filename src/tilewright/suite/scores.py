"""Scores: what a method's results on a suite come to. Pure functions over ``Result``; no score hides a loss.

* ``fast_p``: the share of problems that are right and faster than ``p`` (KernelBench, Ouyang et al., 2025). Every problem
  of the suite counts, answered or not. ``fast_0`` is the share that is right.
* ``roofline``: the weighted mean over problems of floor ÷ time, wrong ones 0 (Atrex-Bench, 2026): how much of the weighted
  work runs as fast as the hardware allows.
* ``categories``: the same per category (KernelBenchX, 2026).
* ``transfer``: of the kernels that won on the shown workloads, how many win on hidden ones (kernel-fingerprinting, 2026).

What was not measured is not guessed: shares come as a range from "none of these" to "all of these".
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

THRESHOLDS = (0.0, 0.5, 0.8, 1.0, 1.5, 2.0)
Transferred = Literal["", "holds", "wrong", "slower", "gone"]
"""What a win came to on hidden workloads; empty: there was none, or it was not tried."""


@dataclass(frozen=True)
class Timing:
    """One workload: ``speedup`` is baseline time over kernel time, with its interval; ``floor`` the hardware's least time
    over the kernel's time, None where the task's work is not stated."""

    workload: str
    speedup: float
    low: float
    high: float
    floor: float | None = None
    answer: str = ""
    weight: float = 1.0


@dataclass(frozen=True)
class Result:
    """One problem and one method. ``verdict``: accept, reject, incomplete, error, or missing (no kernel). ``answer``:
    faster, slower, no measurable gain, too noisy, refused, or empty where nothing was measured."""

    problem: str
    category: str
    verdict: str
    cls: str = ""
    reason: str = ""
    answer: str = ""
    timings: tuple[Timing, ...] = ()
    weight: float = 1.0
    transfer: Transferred = ""

    @property
    def right(self) -> bool:
        return self.verdict == "accept" and self.answer != "refused"

    @property
    def measured(self) -> bool:
        return bool(self.timings) and self.answer not in ("refused", "too noisy")

    @property
    def pending(self) -> bool:
        """Right, and no number to say how fast."""
        return self.right and not self.measured

    @property
    def speedup(self) -> float:
        """Weighted geometric mean over the workloads; NaN where nothing was measured."""
        return _geomean(self.timings, lambda t: t.speedup)

    @property
    def interval(self) -> tuple[float, float]:
        """Of ``speedup``: the means of the workloads' ends, which holds whatever the workloads have in common."""
        return _geomean(self.timings, lambda t: t.low), _geomean(self.timings, lambda t: t.high)

    @property
    def floor(self) -> float | None:
        """Weighted mean over the workloads; None where no floor is known."""
        known = [t for t in self.timings if t.floor is not None]
        total = sum(t.weight for t in known)
        return sum(min(t.floor or 0.0, 1.0) * t.weight for t in known) / total if total else None


def _geomean(timings: Iterable[Timing], value: Callable[[Timing], float]) -> float:
    pairs = [(value(t), t.weight) for t in timings]
    total = sum(w for _, w in pairs)
    if not total or any(v <= 0 for v, _ in pairs):
        return math.nan
    return math.exp(sum(w * math.log(v) for v, w in pairs) / total)


@dataclass(frozen=True)
class Share:
    """``low`` of ``of`` have it; up to ``high`` may, since the rest between them was not measured."""

    low: float
    high: float
    of: float

    @property
    def known(self) -> bool:
        return self.high - self.low < 1e-12

    @property
    def value(self) -> float:
        """The share, at its least."""
        return self.low / self.of if self.of else math.nan

    @property
    def most(self) -> float:
        return self.high / self.of if self.of else math.nan


def fast_p(results: Sequence[Result], p: float, *, surely: bool = False) -> Share:
    """Share of problems that are right and faster than ``p``. ``surely``: with the whole interval beyond ``p``."""
    yes = sum(_beyond(r, p, surely) for r in results)
    open_ = sum(r.pending for r in results) if p > 0 else 0
    return Share(yes, yes + open_, len(results))


def _beyond(r: Result, p: float, surely: bool) -> bool:
    if not r.right:
        return False
    if p <= 0:
        return True
    return r.measured and (r.interval[0] if surely else r.speedup) > p


def roofline(results: Sequence[Result]) -> Share:
    """Importance-weighted floor fraction; a problem that is not right scores 0."""
    total = sum(r.weight for r in results)
    score = sum(r.weight * (r.floor or 0.0) for r in results if r.right and r.measured)
    unknown = sum(r.weight for r in results if r.right and (not r.measured or r.floor is None))
    return Share(score, score + unknown, total)


@dataclass(frozen=True)
class Category:
    """One row of the table. ``speedup`` is the geometric mean over what was measured, NaN for nothing."""

    name: str
    total: int
    verdicts: Counter[str]
    answers: Counter[str]
    speedup: float
    fast_1: Share
    roofline: Share


def categories(results: Sequence[Result]) -> list[Category]:
    """One row a category, by name; problems without one stand under ``-``."""
    names = sorted({r.category or "-" for r in results})
    return [_category(n, [r for r in results if (r.category or "-") == n]) for n in names]


def _category(name: str, rows: list[Result]) -> Category:
    measured = [math.log(r.speedup) for r in rows if r.right and r.measured]
    mean = math.exp(sum(measured) / len(measured)) if measured else math.nan
    answers = Counter(r.answer for r in rows if r.answer)
    return Category(name, len(rows), Counter(r.verdict for r in rows), answers, mean, fast_p(rows, 1.0), roofline(rows))


@dataclass(frozen=True)
class Transfer:
    """``wins`` were tried on hidden workloads and ``holds`` of them won there; ``untried`` were not tried."""

    wins: int
    holds: int
    causes: Counter[str]
    untried: int

    @property
    def rate(self) -> float:
        return self.holds / self.wins if self.wins else math.nan

    @property
    def interval(self) -> tuple[float, float]:
        """95% interval of the rate (Wilson, 1927)."""
        return wilson(self.holds, self.wins)


def transfer(results: Sequence[Result]) -> Transfer:
    """How many wins hold on hidden workloads, and what became of the others."""
    won = [r for r in results if r.right and r.answer == "faster"]
    tried = [r for r in won if r.transfer]
    lost = Counter(r.transfer for r in tried if r.transfer != "holds")
    return Transfer(len(tried), sum(r.transfer == "holds" for r in tried), Counter(lost), len(won) - len(tried))


def wilson(hits: int, of: int, z: float = 1.959964) -> tuple[float, float]:
    """Interval of a rate from counts; (0, 1) for no trials."""
    if not of:
        return 0.0, 1.0
    p, d = hits / of, 1 + z * z / of
    half = z * math.sqrt(p * (1 - p) / of + z * z / (4 * of * of)) / d
    middle = (p + z * z / (2 * of)) / d
    return max(0.0, middle - half), min(1.0, middle + half)


def losses(results: Sequence[Result]) -> list[Result]:
    """What a mean would hide, worst first: kernels that are slower overall, or slower on a workload."""
    slow = [
        r for r in results if r.right and r.measured and (r.answer == "slower" or any(t.high < 1 for t in r.timings))
    ]
    return sorted(slow, key=lambda r: min(t.speedup for t in r.timings))


def data(results: Sequence[Result], thresholds: Sequence[float] = THRESHOLDS) -> dict[str, Any]:
    """All scores as JSON."""
    moved = transfer(results)
    return {
        "fast_p": {f"{p:g}": _share(fast_p(results, p)) for p in thresholds},
        "surely_fast_p": {f"{p:g}": _share(fast_p(results, p, surely=True)) for p in thresholds if p > 0},
        "roofline": _share(roofline(results)),
        "transfer": {"wins": moved.wins, "holds": moved.holds, "rate": _plain(moved.rate), "interval": moved.interval,
                     "causes": dict(moved.causes), "untried": moved.untried},
        "categories": [{"name": c.name, "problems": c.total, "verdicts": dict(c.verdicts), "answers": dict(c.answers),
                        "speedup": _plain(c.speedup), "fast_1": _share(c.fast_1), "roofline": _share(c.roofline)}
                       for c in categories(results)],
        "losses": [r.problem for r in losses(results)],
    }  # fmt: skip


def _share(s: Share) -> dict[str, float | None]:
    return {"least": _plain(s.value), "most": _plain(s.most), "of": s.of}


def _plain(value: float) -> float | None:
    return value if math.isfinite(value) else None
