"""Numbers as people read them."""

from __future__ import annotations

import datetime
import math
from pathlib import Path
from typing import Any

from ...measure.record import Interval

NARROW = "\u202f"
DASH = "–"
UNKNOWN = "—"


def _scaled(value: float, units: tuple[tuple[float, str], ...], figures: int = 3) -> str:
    for size, unit in units:
        if abs(value) >= size:
            return f"{digits(value / size, figures)}{NARROW}{unit}"
    size, unit = units[-1]
    return f"{digits(value / size, figures)}{NARROW}{unit}"


def digits(value: float, figures: int = 3) -> str:
    """Three figures, never an exponent below a million.

    >>> digits(1.2345), digits(123.4), digits(1234.5), digits(0.00123)
    ('1.23', '123', '1234', '0.00123')
    """
    if not math.isfinite(value):
        return UNKNOWN
    if value == 0:
        return "0"
    places = figures - 1 - math.floor(math.log10(abs(value)))
    return f"{value:.{max(places, 0)}f}" if places < 8 else f"{value:.{figures - 1}e}"


def seconds(value: float | None) -> str:
    """A time in the unit that suits it."""
    if value is None:
        return UNKNOWN
    return _scaled(value, ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns")))


def size(value: float | None) -> str:
    """Bytes in binary units."""
    if value is None:
        return UNKNOWN
    if abs(value) < 1024:
        return f"{value:.0f}{NARROW}B"
    return _scaled(value, ((2.0**40, "TiB"), (2.0**30, "GiB"), (2.0**20, "MiB"), (2.0**10, "KiB")))


def bandwidth(value: float) -> str:
    return _scaled(value, ((1e12, "TB/s"), (1e9, "GB/s"), (1e6, "MB/s"), (1e3, "kB/s")))


def rate(value: float, figures: int = 3) -> str:
    return _scaled(value, ((1e12, "TFLOP/s"), (1e9, "GFLOP/s"), (1e6, "MFLOP/s"), (1e3, "kFLOP/s")), figures)


def times(value: float) -> str:
    """A ratio: three places near 1, where the interesting ones are."""
    if not math.isfinite(value):
        return UNKNOWN
    near = 0.9 <= value < 1.1
    return f"{value:.3f}×" if near else f"{digits(value)}×"


def span(i: Interval | None) -> str:
    """The ends of an interval of ratios."""
    if i is None:
        return UNKNOWN
    return f"{times(i.low).rstrip('×')}{DASH}{times(i.high)}"


def time_span(i: Interval | None) -> str:
    """A time with its interval as a share: ``12.3 µs ± 0.4%``."""
    if i is None:
        return UNKNOWN
    return f"{seconds(i.median)} ±{NARROW}{digits(100 * i.half_width, 2)}%"


def percent(value: float | None, places: int = 0) -> str:
    return UNKNOWN if value is None or not math.isfinite(value) else f"{100 * value:.{places}f}%"


def dims(values: dict[str, Any]) -> str:
    return " ".join(f"{k}={v}" for k, v in values.items())


def moment(text: str) -> str:
    """A time in ISO 8601, to the minute.

    >>> moment("2026-11-30T22:02:02.969062+00:00")
    '2026-11-30 22:02 UTC'
    """
    try:
        at = datetime.datetime.fromisoformat(text)
    except ValueError:
        return text
    zone = at.tzname() or ""
    return f"{at:%Y-%m-%d %H:%M} {zone}".strip()


def place(path: str) -> str:
    """A path as a reader elsewhere can use it: without what is above the working folder, else its last two parts.

    >>> place("examples/kernel.c"), place("/home/someone/kernels/softmax/kernel.c::entry")
    ('examples/kernel.c', 'softmax/kernel.c::entry')
    """
    given = Path(path)
    if not given.is_absolute():
        return path
    here = Path.cwd()
    return str(given.relative_to(here)) if given.is_relative_to(here) else "/".join(given.parts[-2:])


def plural(n: int, word: str) -> str:
    """
    >>> plural(1, "case"), plural(3, "case")
    ('1 case', '3 cases')
    """
    return f"{n} {word}{'s' * (n != 1)}"
