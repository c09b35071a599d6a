"""Small readers of MLIR's text: types, attributes, locations, top-level splitting."""

from __future__ import annotations

import re
from typing import Any

from ..program import Type

_OPEN, _CLOSE = "<({[", ">)}]"


def split_top(text: str, sep: str = ",") -> list[str]:
    """Parts of ``text`` at separators outside brackets; ``->`` is no bracket. Empty text gives no parts."""
    parts, depth, start, i = [], 0, 0, 0
    while i < len(text):
        c = text[i]
        if c in _OPEN:
            depth += 1
        elif c in _CLOSE and not (c == ">" and i and text[i - 1] == "-"):
            depth -= 1
        elif depth == 0 and text.startswith(sep, i):
            parts.append(text[start:i].strip())
            i += len(sep)
            start = i
            continue
        i += 1
    tail = text[start:].strip()
    return [*parts, tail] if tail or parts else []


def matching(text: str, start: int) -> int:
    """Index of the bracket that closes the one at ``start``."""
    depth = 0
    for i in range(start, len(text)):
        if text[i] in _OPEN:
            depth += 1
        elif text[i] in _CLOSE and not (text[i] == ">" and text[i - 1] == "-"):
            depth -= 1
            if depth == 0:
                return i
    raise ValueError(f"no bracket closes the one at {start} of {text[:80]!r}")


def parse_type(text: str) -> Type:
    """Type from its text: ``i32``, ``!tt.ptr<f16>``, ``tensor<64x1x!tt.ptr<f16>>``, ``!tt.tensordesc<…>``."""
    text = text.strip()
    if text.startswith("tensor<"):
        shape, elem = _dims(text[7:-1])
        inner = parse_type(elem)
        return Type(inner.elem, shape, inner.pointee)
    if text.startswith("!tt.ptr<"):
        return Type("ptr", (), _elem_of(split_top(text[8:-1])[0]))
    if text.startswith("!tt.tensordesc<"):
        inner_text = split_top(text[15:-1])[0]
        if inner_text.startswith("tensor<"):
            inner_text = inner_text[7:-1]
        shape, elem = _dims(split_top(inner_text)[0])
        return Type("desc", (), elem, shape)
    return Type(text)


def _elem_of(text: str) -> str:
    inner = parse_type(text)
    return str(inner) if inner.shape or inner.elem == "ptr" else inner.elem


def _dims(text: str) -> tuple[tuple[int, ...], str]:
    m = re.match(r"((?:\d+x)*)", text)
    head = m.group(1) if m else ""
    return tuple(int(d) for d in head.split("x") if d), text[len(head) :]


def parse_types(text: str) -> list[Type]:
    """Types of a list, with or without its parentheses."""
    text = text.strip()
    if text.startswith("(") and matching(text, 0) == len(text) - 1:
        text = text[1:-1]
    return [parse_type(t) for t in split_top(text) if t]


def parse_attr(text: str, strings: list[str]) -> Any:
    """Python value of an attribute: int, float, bool, str, tuple, or the text as it stands."""
    text = text.strip()
    m = re.fullmatch(r"\x00(\d+)\x00(?: : \w+)?", text)
    if m:
        return strings[int(m.group(1))]
    if text in ("true", "false"):
        return text == "true"
    m = re.fullmatch(r"(-?\d+)(?: : [\w]+)?", text)
    if m:
        return int(m.group(1))
    m = re.fullmatch(r"array<i\d+(?:: ?(.*))?>", text)
    if m:
        return tuple(int(x) if x.strip().lstrip("-").isdigit() else x == "true" for x in split_top(m.group(1) or ""))
    if text.startswith("[") and text.endswith("]"):
        return tuple(parse_attr(p, strings) for p in split_top(text[1:-1]))
    return text


def parse_dict(text: str, strings: list[str]) -> dict[str, Any]:
    """Attributes of ``k = v, flag, …``."""
    out: dict[str, Any] = {}
    for part in split_top(text):
        key, eq, value = part.partition(" = ")
        out[key.strip()] = parse_attr(value, strings) if eq else True
    return out


def hide_strings(text: str) -> tuple[str, list[str]]:
    """Text with its string literals replaced by ``\\0i\\0``, and the literals."""
    strings: list[str] = []

    def keep(m: re.Match[str]) -> str:
        strings.append(_unescape(m.group(1)))
        return f"\x00{len(strings) - 1}\x00"

    return re.sub(r'"((?:[^"\\]|\\.)*)"', keep, text), strings


def _unescape(s: str) -> str:
    return (
        re.sub(r"\\([0-9A-Fa-f]{2})", lambda m: chr(int(m.group(1), 16)), s).replace('\\"', '"').replace("\\\\", "\\")
    )


class Locations:
    """Source lines behind ``#loc`` names. ``frames`` gives the inlining chain, innermost first."""

    def __init__(self, text: str):
        self.table = {m.group(1): m.group(2) for m in re.finditer(r"^(#loc\d*) = loc\((.*)\)$", text, re.M)}
        self.cache: dict[str, tuple[str, ...]] = {}

    def frames(self, loc: str) -> tuple[str, ...]:
        got = self.cache.get(loc)
        if got is None:
            got = self.cache[loc] = self._resolve(loc.strip(), 0)
        return got

    def _resolve(self, loc: str, depth: int) -> tuple[str, ...]:
        if depth > 200 or not loc or loc == "unknown":
            return ()
        if loc.startswith("#"):
            return self._resolve(self.table.get(loc, "unknown"), depth + 1)
        if loc.startswith("callsite("):
            callee, _, caller = loc[9:-1].partition(" at ")
            return self._resolve(callee, depth + 1) + self._resolve(caller, depth + 1)
        m = re.match(r'"((?:[^"\\]|\\.)*)":(\d+)', loc)
        if m:
            return (f"{m.group(1)}:{m.group(2)}",)
        m = re.match(r'"(?:[^"\\]|\\.)*"\((.*)\)$', loc)
        if m:
            return self._resolve(m.group(1), depth + 1)
        m = re.match(r"fused(?:<.*>)?\[(.*)\]$", loc)
        return self._resolve(split_top(m.group(1))[0], depth + 1) if m else ()


def user_frame(frames: tuple[str, ...]) -> str:
    """The innermost frame outside Triton's own library, or the outermost one."""
    for f in frames:
        if not re.search(r"(^|/)triton/language/", f):
            return f
    return frames[-1] if frames else ""
