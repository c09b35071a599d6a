"""The noise band in words: how wide, and what it is made of, the A/A run or the least effect that the protocol calls one."""

from __future__ import annotations

from ..measure.record import Figure, Interval, Measurement

LEAST = "the least effect that the protocol calls one"
NONE = f"{LEAST}; no A/A run came together"


def reach(null: Interval) -> float:
    """How far from 1 the interval of a kernel against itself reaches."""
    return max(abs(null.low - 1), abs(null.high - 1))


def of_figure(f: Figure) -> str:
    """``band ±12.3%: as far as A/A reaches``."""
    return f"band ±{f.noise:.1%}: {_why(f.noise, None if f.null is None else reach(f.null))}"


def of_measurement(m: Measurement) -> str:
    """``±12.3%: as far as A/A reaches at M=64, N=512``: the widest band of the announced workloads."""
    found = [(reach(w.figure.null), w.name) for w in m.workloads if w.kind != "hidden" and w.figure and w.figure.null]
    if not found:
        return f"±{m.noise:.1%}: {NONE}"
    widest, name = max(found)
    place = f" at {name}" if len(m.workloads) > 1 and widest >= m.noise else ""
    return f"±{m.noise:.1%}: {_why(m.noise, widest)}{place}"


def _why(noise: float, reached: float | None) -> str:
    if reached is None:
        return NONE
    if reached >= noise * (1 - 1e-9):
        return "as far as A/A reaches"
    return f"{LEAST}; A/A stays within ±{reached:.1%}"
