"""Parameters that a kernel file declares, and what must hold between them.

In C, on a macro; in Python, on a module-level constant or on a keyword argument that has its line to itself:

    #define TILE 32   // knob: 8 16 32 64          TILE = 32         # knob: 8 16 32 64
    #define LANES 8   // knob: 1..16*2             num_warps=4,      # knob: 1..8*2
    // require: TILE % LANES == 0                  # require: TILE % LANES == 0

``a..b`` is every integer from a to b, ``a..b*2`` doubles from a to b; anything else is taken as written. The configs of
``@triton.autotune`` are a declaration too: each of their parameters may take each value that any config gives it, and
a proposal leaves the one config that it chose.
"""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from ...errors import KernelError
from ..tree import Scalar
from ._require import Require

Values = Mapping[str, Scalar]
LAUNCHED = ("num_warps", "num_stages", "num_ctas", "maxnreg")  # options of a launch, beside a config's parameters
MOST = 1 << 20  # points of a grid; a space larger than this is sampled and never listed
C = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(?P<name>\w+)[ \t]+(?P<value>[^/\n]+?)[ \t]*(?://|/\*)[ \t]*knob:"
               r"(?P<choices>(?:(?!\*/)[^\n])*)", re.MULTILINE)  # fmt: skip
PYTHON = re.compile(r"^(?P<indent>[ \t]*)(?P<name>\w+)[ \t]*(?::[^=\n]+)?=[ \t]*(?P<value>[^#\n]+?)[ \t]*,?[ \t]*#[ \t]*"
                    r"knob:(?P<choices>[^\n]*)", re.MULTILINE)  # fmt: skip
REQUIRE = re.compile(r"(?://|/\*|#)[ \t]*require:[ \t]*(?P<rule>[^\n]*)")
WRAPPED = re.compile(r"^(?:tl|triton\.language)\.constexpr\((?P<inner>.*)\)$")
SPAN = re.compile(r"^(-?\d+)\.\.(-?\d+)(?:\*(\d+))?$")


@dataclass(frozen=True)
class Knob:
    """One parameter: its value now, the values it may take, and where its value stands in the text."""

    name: str
    value: Scalar
    choices: tuple[Scalar, ...]
    start: int
    end: int
    line: int


@dataclass(frozen=True)
class Space:
    """The parameters of one source text. ``tuned`` is the span of an autotuner's list of configs, if there is one."""

    text: str
    knobs: tuple[Knob, ...] = ()
    requires: tuple[Require, ...] = ()
    tuned: tuple[int, int] | None = None
    configs: tuple[Knob, ...] = ()

    @property
    def all(self) -> tuple[Knob, ...]:
        return self.knobs + self.configs

    @property
    def now(self) -> dict[str, Scalar]:
        """The values in the text as it stands."""
        return {k.name: k.value for k in self.all}

    @cached_property
    def size(self) -> int:
        """Points before constraints."""
        n = 1
        for k in self.all:
            n *= len(k.choices)
        return n

    def broken(self, values: Values) -> str:
        """The first constraint that does not hold, or nothing."""
        return next((r.text for r in self.requires if not r.holds(values)), "")

    def grid(self) -> Iterator[dict[str, Scalar]]:
        """All lawful points, last parameter fastest. Raises KernelError for a space too large to list."""
        if self.size > MOST:
            raise KernelError(f"the declared parameters have {self.size} combinations, too many to list",
                              remedy="declare fewer values, or use sampler=random or sampler=tpe")  # fmt: skip
        for point in itertools.product(*(k.choices for k in self.all)):
            values = {k.name: v for k, v in zip(self.all, point, strict=True)}
            if not self.broken(values):
                yield values

    def apply(self, values: Values) -> str:
        """The text with these values; parameters that are not named stay as they are.

        ``#define TILE 32 // knob: 8 32``, ``{"TILE": 8}`` → ``#define TILE 8 // knob: 8 32``.
        """
        chosen = {**self.now, **values}
        edits = [(k.start, k.end, written(chosen[k.name], self.text[k.start : k.end])) for k in self.knobs]
        if self.tuned is not None:
            edits.append((*self.tuned, self._config(chosen)))
        text = self.text
        for start, end, new in sorted(edits, reverse=True):
            text = text[:start] + new + text[end:]
        return text

    def _config(self, chosen: Values) -> str:
        own = {k.name: chosen[k.name] for k in self.configs}
        body = ", ".join(f"{n!r}: {v!r}" for n, v in own.items() if n not in LAUNCHED)
        rest = "".join(f", {n}={v!r}" for n, v in own.items() if n in LAUNCHED)
        return f"[triton.Config({{{body}}}{rest})]"

    def skeleton(self) -> str:
        """The text with every parameter blanked out: what versions that differ in parameters alone have in common."""
        blank = [(k.start, k.end) for k in self.knobs] + ([self.tuned] if self.tuned else [])
        text = self.text
        for start, end in sorted(blank, reverse=True):
            text = text[:start] + "?" + text[end:]
        return text


def read(text: str, language: str, name: str = "kernel") -> Space:
    """The declared parameters of a source text. Raises KernelError (file:line) for a declaration that can't be read."""
    pattern = C if language in ("native", "cuda") else PYTHON
    knobs = tuple(_knob(m, text, name) for m in pattern.finditer(text))
    tuned, configs = (None, ()) if pattern is C else _autotune(text)
    _unique(knobs + configs, name)
    known = {k.name for k in knobs + configs}
    requires = tuple(
        Require.read(m["rule"].removesuffix("*/").strip(), known, f"{name}:{_line(text, m.start())}")
        for m in REQUIRE.finditer(text)
    )
    return Space(text, knobs, requires, tuned, configs)


def _knob(m: re.Match[str], text: str, name: str) -> Knob:
    line = _line(text, m.start("name"))
    where = f"{name}:{line}"
    choices = tuple(dict.fromkeys(itertools.chain.from_iterable(_choices(w, where) for w in m["choices"].split())))
    if len(choices) < 2:
        raise KernelError(f"'{m['name']}' is declared as a knob with {len(choices)} values", where=where,
                          remedy="list at least two: knob: 8 16 32")  # fmt: skip
    inner = WRAPPED.match(m["value"])
    value = scalar((inner["inner"] if inner else m["value"]).strip())
    if value not in choices:
        choices = (value, *choices)
    return Knob(m["name"], value, choices, m.start("value"), m.end("value"), line)


def _choices(word: str, where: str) -> tuple[Scalar, ...]:
    span = SPAN.match(word)
    if span is None:
        return (scalar(word),)
    low, high, times = int(span[1]), int(span[2]), int(span[3] or 0)
    if low > high or (span[3] and (times < 2 or low < 1)):
        raise KernelError(f"'{word}' is no range", where=where, remedy="write 1..8, or 8..64*2 for 8 16 32 64")
    if not times:
        return tuple(range(low, high + 1))
    return tuple(itertools.takewhile(lambda v: v <= high, (low * times**i for i in range(64))))


def scalar(word: str) -> Scalar:
    """A number where it is one, True and False, else the word itself."""
    if word in ("True", "False"):
        return word == "True"
    for kind in (int, float):
        try:
            return kind(word)
        except ValueError:
            continue
    return word


def written(value: Scalar, old: str) -> str:
    """A value as it stands in the source; what wrapped the old one wraps it too."""
    return f"tl.constexpr({value})" if WRAPPED.match(old.strip()) else str(value)


def _autotune(text: str) -> tuple[tuple[int, int] | None, tuple[Knob, ...]]:
    """Span of the list of configs of the only ``@triton.autotune``, and its parameters."""
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return None, ()
    lists = [_configs(d) for f in ast.walk(tree) if isinstance(f, ast.FunctionDef) for d in f.decorator_list]
    found = [x for x in lists if x is not None]
    if len(found) != 1 or not (seen := _seen(found[0])):
        return None, ()
    start, end = _offset(text, found[0].lineno, found[0].col_offset), 0
    end = _offset(text, found[0].end_lineno or 0, found[0].end_col_offset or 0)
    line = found[0].lineno
    return (start, end), tuple(Knob(n, v[0], tuple(dict.fromkeys(v)), start, end, line) for n, v in seen.items())


def _configs(node: ast.expr) -> ast.List | None:
    if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("autotune"):
        given = next((k.value for k in node.keywords if k.arg == "configs"), node.args[0] if node.args else None)
        return given if isinstance(given, ast.List) and given.elts else None
    return None


def _seen(configs: ast.List) -> dict[str, list[Scalar]]:
    """Each parameter with the values that the configs give it; nothing if any config is not written out."""
    seen: dict[str, list[Scalar]] = {}
    for c in configs.elts:
        if not (isinstance(c, ast.Call) and c.args and isinstance(c.args[0], ast.Dict)):
            return {}
        pairs = list(zip(c.args[0].keys, c.args[0].values, strict=True))
        pairs += [(ast.Constant(k.arg), k.value) for k in c.keywords]
        for key, value in pairs:
            if not (isinstance(key, ast.Constant) and isinstance(value, ast.Constant)):
                return {}
            seen.setdefault(str(key.value), []).append(value.value)  # type: ignore[arg-type]
    return seen if all(len(v) == len(configs.elts) for v in seen.values()) else {}


def _offset(text: str, line: int, column: int) -> int:
    lines = text.splitlines(keepends=True)
    return sum(map(len, lines[: line - 1])) + len(lines[line - 1].encode()[:column].decode())


def _line(text: str, at: int) -> int:
    return text.count("\n", 0, at) + 1


def _unique(knobs: tuple[Knob, ...], name: str) -> None:
    for a, b in itertools.combinations(knobs, 2):
        if a.name == b.name:
            raise KernelError(f"'{a.name}' is declared twice", where=f"{name}:{b.line}",
                              remedy=f"the other one stands in line {a.line}; give one of them another name")  # fmt: skip
