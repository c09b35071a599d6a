"""Budgets: trials, wall time, GPU seconds, tokens, money; what is left of them, and when to stop.

>>> Budget.parse(["90s", "40trials"])
Budget(trials=40.0, seconds=90.0, gpu_seconds=None, tokens=None, money=None)
"""

from __future__ import annotations

import re
import statistics
from collections.abc import Iterable
from dataclasses import dataclass

from ..errors import UserError
from .tree import Cost, Left

UNITS: dict[str, tuple[str, float]] = {
    "trial": ("trials", 1), "trials": ("trials", 1), "s": ("seconds", 1), "min": ("seconds", 60), "m": ("seconds", 60),
    "h": ("seconds", 3600), "gpus": ("gpu_seconds", 1), "gpumin": ("gpu_seconds", 60), "gpuh": ("gpu_seconds", 3600),
    "tokens": ("tokens", 1), "ktokens": ("tokens", 1e3), "mtokens": ("tokens", 1e6), "money": ("money", 1),
    "usd": ("money", 1), "eur": ("money", 1),
}  # fmt: skip
EXAMPLES = "60s, 5min, 2h, 40trials, 300gpus (GPU seconds), 200ktokens, 2.50usd; several with commas"
WORDS = {"trials": "trials", "seconds": "time", "gpu_seconds": "GPU time", "tokens": "tokens", "money": "money"}
RESERVE = 0.3
"""Share of the wall time kept for measuring the finalists …"""
RESERVE_MOST = 300.0
"""… and its limit in seconds."""


@dataclass(frozen=True)
class Budget:
    """Limits; None where there is none."""

    trials: float | None = None
    seconds: float | None = None
    gpu_seconds: float | None = None
    tokens: float | None = None
    money: float | None = None

    @classmethod
    def parse(cls, texts: Iterable[str]) -> Budget:
        """From ``60s``, ``40trials,5min`` … Raises UserError for what is none, or for no limit at all."""
        found: dict[str, float] = {}
        for part in (p.strip() for text in texts for p in text.split(",")):
            match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([a-z]+)", part.lower())
            if match is None or match[2] not in UNITS or float(match[1]) <= 0:
                raise UserError(f"'{part}' is no budget", remedy=f"write it like {EXAMPLES}")
            name, factor = UNITS[match[2]]
            if name in found:
                raise UserError(f"the budget for {WORDS[name]} is given twice")
            found[name] = float(match[1]) * factor
        if not found:
            raise UserError("a search needs a budget", remedy=f"--budget {EXAMPLES.split(',')[0]}; also {EXAMPLES}")
        return cls(**found)

    def left(self, trials: int, spent: Cost) -> Left:
        """What is left after so many trials and this cost (``spent.seconds`` is wall time)."""
        used = {"trials": trials, "seconds": spent.seconds, "gpu_seconds": spent.gpu_seconds, "tokens": spent.tokens,
                "money": spent.money}  # fmt: skip
        return Left(**{n: None if (limit := getattr(self, n)) is None else limit - u for n, u in used.items()})

    @property
    def reserve(self) -> float:
        """Seconds of the wall time that are kept for the finalists."""
        return 0.0 if self.seconds is None else min(RESERVE * self.seconds, RESERVE_MOST)


def spent_out(left: Left, reserve: float, trial_seconds: list[float]) -> str:
    """Which limit forbids another trial, in words; nothing if none does.

    A trial that would not end before the reserve begins (judged by the median of those so far) is not started.
    """
    if left.seconds is not None:
        usual = statistics.median(trial_seconds) if trial_seconds else 0.0
        if left.seconds - reserve < usual or left.seconds <= reserve:
            return WORDS["seconds"]
    for name in ("trials", "gpu_seconds", "tokens", "money"):
        amount = getattr(left, name)
        if amount is not None and amount <= 0:
            return WORDS[name]
    return ""
