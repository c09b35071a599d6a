"""From intervals to an answer. Nothing here looks at a clock; every rule is a number of the protocol.

1. A figure whose clocks disagree, or that beats the floor, is refused: the harness is at fault, or someone cheats.
2. The noise band around 1 is what the A/A run reaches to, at least the smallest effect.
3. ``faster`` when the whole interval of baseline over kernel lies above the band, ``slower`` when it lies below.
4. ``too noisy`` when the block ratios vary by more than the cap. Otherwise ``no measurable gain``.
"""

from __future__ import annotations

from collections.abc import Sequence

from .protocol import Protocol
from .record import Answer, Figure, Floor, Interval, Ratio, WorkloadResult

WRONG = ("the output of a timed call is wrong", "a timed call changed its input")
"""How the judge of timed calls begins (``Stage.judge``)."""


def noise_band(null: Interval | None, protocol: Protocol) -> float:
    """Half the width of the band around 1 in which nothing is claimed."""
    if null is None:
        return protocol.smallest_effect
    reach = max(abs(null.low - 1), abs(null.high - 1)) * protocol.null_margin
    return max(protocol.smallest_effect, reach)


def answer(ratio: Interval, variation: float, noise: float, protocol: Protocol) -> tuple[Answer, str]:
    """The answer to one comparison, with its reason."""
    if variation > protocol.variation_cap:
        return "too noisy", (f"block ratios vary by {variation:.1%}, above the cap of {protocol.variation_cap:.0%}")
    if ratio.low > 1 + noise:
        return "faster", f"the whole interval lies above 1 + {noise:.1%}"
    if ratio.high < 1 / (1 + noise):
        return "slower", f"the whole interval lies below 1 / (1 + {noise:.1%})"
    return "no measurable gain", f"the interval reaches into the noise band of {noise:.1%} around 1"


def clocks_disagree(time: float, cross: float, protocol: Protocol) -> str:
    """Why two clocks that timed the same calls can't both be right; empty if they agree."""
    allowed = protocol.clocks_share * time + protocol.clocks_seconds
    if abs(time - cross) <= allowed:
        return ""
    return f"two clocks disagree: {time * 1e6:.1f} µs and {cross * 1e6:.1f} µs, by more than {allowed * 1e6:.1f} µs"


def below_floor(time: Interval, floor: Floor, protocol: Protocol) -> str:
    """Why a time is impossible; empty if it is possible."""
    if floor.seconds <= 0 or time.high >= floor.seconds * (1 - protocol.floor_margin):
        return ""
    return (f"{time.median * 1e6:.1f} µs is less than the {floor.seconds * 1e6:.1f} µs that this machine needs for the "
            f"task's compulsory work: a fault of the harness, or a cheat")  # fmt: skip


def overall(
    results: Sequence[WorkloadResult], ratio: Interval | None, noise: float, protocol: Protocol
) -> tuple[Answer, str]:
    """The answer over all workloads: refusals and noise first, then the geometric mean; losses are named."""
    if why := wrong_elsewhere(results):
        return "refused", why
    for wanted in ("refused", "too noisy"):
        bad = [r for r in results if r.answer == wanted]
        if bad:
            return bad[0].answer, f"{bad[0].name}: {bad[0].reason}"
    if ratio is None:
        return "refused", "no baseline is right and available, so there is nothing to compare with"
    found, why = answer(ratio, 0.0, noise, protocol)
    lost = [r.name for r in results if r.answer == "slower"]
    return found, why + (f"; slower on {', '.join(lost)}" if lost and found != "slower" else "")


def wrong_elsewhere(results: Sequence[WorkloadResult]) -> str:
    """Where the kernel was wrong in a state that does not decide (cold, or replayed from a graph); empty if nowhere. A
    state in which it can't be timed is no fault, one in which it computes something else is."""
    for r in results:
        for f in r.figures[1:]:
            if f.answer == "refused" and f.reason.startswith(WRONG):
                return f"{r.name}, {f.cache} cache, {f.launch} launch: {f.reason}"
    return ""


def honest(ratios: Sequence[Ratio]) -> str:
    """Name of the fastest baseline: the one with the smallest ratio."""
    return min(ratios, key=lambda r: r.interval.median).baseline if ratios else ""


def figure_answer(figure: Figure) -> tuple[Answer, str]:
    """A figure's answer: that against its honest baseline."""
    ratio = figure.ratio()
    if ratio is None:
        return "refused", "no baseline is right and available, so there is nothing to compare with"
    return ratio.answer, ratio.reason
