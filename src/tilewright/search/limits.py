"""Time limits that follow what was seen: a candidate gets a multiple of what right kernels needed, not a constant.

Source of the idea: adaptive compile time limits from quantiles of the first population (Helion's autotuner, 2025).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

FACTOR = 4.0
QUANTILE = 0.9


@dataclass(frozen=True)
class Limits:
    """Seconds for one call of a kernel, and for its whole check."""

    call: float = 60.0
    check: float = 600.0


def limits(checks: Iterable[float], *, least_call: float = 5.0, least_check: float = 20.0) -> Limits:
    """Limits from the seconds that the checks of accepted kernels took, the first of them that of the starting kernel.

    One call may take as long as such a whole check, and a check four times as long as nine in ten of them.
    """
    seen = sorted(checks)
    if not seen:
        return Limits()
    usual = seen[min(int(QUANTILE * len(seen)), len(seen) - 1)]
    return Limits(call=min(60.0, max(least_call, usual)), check=min(600.0, max(least_check, FACTOR * usual)))
