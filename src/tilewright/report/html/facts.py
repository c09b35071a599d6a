"""Nested records as rows of names and short texts, for lists of facts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from . import words

MOST = 6
UNITS = {"mhz": "MHz", "w": "W", "c": "°C", "s": "s", "mib": "MiB", "kb": "kB", "percent": "%", "joules": "J"}
NAMES = {"cpu": "CPU", "gpu": "GPU", "sm": "SM", "uuid": "UUID", "os": "OS", "llc": "last cache", "id": "id"}


def rows(data: Mapping[str, Any], above: str = "") -> list[tuple[str, str]]:
    """Nested names are joined; a unit at the end of a name goes to its value; empty values are left out.

    >>> rows({"clock": {"sm": 1980}, "throttle": [], "load": 0.25})
    [('clock SM', '1980'), ('load', '0.2500')]
    """
    return list(_rows(data, above))


def pairs(data: Mapping[str, Any]) -> list[tuple[str, str]]:
    """As ``rows``; what is known from before and after stands in one row, once if nothing changed.

    >>> pairs({"before": {"load": 1, "cores": 2}, "after": {"load": 3, "cores": 2}})
    [('load', '1 → 3'), ('cores', '2')]
    """
    before, after = data.get("before"), data.get("after")
    if not isinstance(before, Mapping) or not isinstance(after, Mapping):
        return rows(data)
    was, now = dict(rows(before)), dict(rows(after))
    joined = [(n, was.get(n, words.UNKNOWN), now.get(n, words.UNKNOWN)) for n in dict.fromkeys((*was, *now))]
    rest = {k: v for k, v in data.items() if k not in ("before", "after")}
    return [(n, a if a == b else f"{a} → {b}") for n, a, b in joined] + rows(rest)


def versions(data: Mapping[str, str]) -> list[tuple[str, str]]:
    """Versions by name; that of the operating system's kernel is told apart from the kernel that was measured.

    >>> versions({"torch": "2.13.0", "kernel": "6.18", "cuda": ""})
    [('torch', '2.13.0'), ('operating system', '6.18')]
    """
    return [("operating system" if k == "kernel" else k, v) for k, v in data.items() if v]


def _rows(data: Mapping[str, Any], above: str) -> Iterator[tuple[str, str]]:
    for key, value in data.items():
        name = " ".join(p for p in (above, _name(str(key))) if p)
        if isinstance(value, Mapping):
            yield from _rows(value, name)
        elif (shown := short(value)) != "":
            yield _with_unit(name, shown, value)


def _with_unit(name: str, shown: str, value: Any) -> tuple[str, str]:
    words_, numbers = name.split(), value if isinstance(value, list | tuple) else [value]
    number = all(isinstance(v, int | float) and not isinstance(v, bool) for v in numbers)
    if len(words_) > 1 and words_[-1] in UNITS and number:
        return " ".join(words_[:-1]), f"{shown}{words.NARROW}{UNITS[words_[-1]]}"
    return name, shown


def _name(key: str) -> str:
    return " ".join(NAMES.get(w, w) for w in key.strip("_").replace("_", " ").split())


def short(value: Any) -> str:
    """A value in a line."""
    match value:
        case None | [] | () | "":
            return ""
        case bool():
            return "yes" if value else "no"
        case float():
            return words.digits(value, 4) if value != int(value) else str(int(value))
        case list() | tuple():
            shown = ", ".join(short(v) for v in value[:MOST])
            return f"{shown} … {len(value) - MOST} more" if len(value) > MOST else shown
        case Mapping():
            return ", ".join(f"{k} {short(v)}" for k, v in value.items())
        case _:
            return str(value)
