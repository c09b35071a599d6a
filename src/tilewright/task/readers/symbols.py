"""Which sizes of a problem vary, and how: found by changing its integers one by one and running it on fake tensors.

1. Every integer ("knob") is raised a little (by 1, else by 2, 4, … where it must stay a multiple). What the reference
   refuses alone is tried together with equal knobs: two literals ``16`` that must agree are one symbol.
2. A knob is a dim if it moves an axis of an input or output (or the upper bound of indices), and is not a mere
   parameter of the constructor: one that also goes into ``get_init_inputs`` counts only where an axis *is* it
   (``out_features`` does; ``kernel_size``, ``stride``, ``num_groups`` don't).
3. Axes get expressions over the dims; all dims are moved at once to see that they are independent.
4. The least size at which the reference still runs, and a greatest one.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from ..tensors import Dim
from .fit import fit
from .trial import Coordinate, NeedsValues, Subject, Trial, run_trial

Refusals = (Exception, SystemExit)

ENOUGH = 2100
"""A dim that was shown to vary is tried up to eight times its size, as far as this."""


@dataclass
class Symbol:
    """``knobs`` that move together, by ``step`` or multiples of it."""

    name: str
    knobs: tuple[str, ...]
    value: int
    step: int
    near: Trial
    far: Trial | None
    moved: frozenset[Coordinate]

    def at(self, size: int) -> dict[str, int]:
        """Knob values that give this symbol this size."""
        return dict.fromkeys(self.knobs, size)


@dataclass
class Inferred:
    """``bindings``: symbol to knobs. ``shapes``: expression of each coordinate of an input (None: no form found)."""

    base: Trial
    symbols: dict[str, Symbol] = field(default_factory=dict)
    dims: dict[str, Dim] = field(default_factory=dict)
    shapes: dict[Coordinate, str | int | None] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def knobs(self, dims: Mapping[str, int]) -> dict[str, int]:
        """Knob values for an assignment of dims."""
        return {k: size for name, size in dims.items() if name in self.symbols for k in self.symbols[name].knobs}


class OutOfTime(Exception):
    """The seconds for trials are spent."""


class Prober:
    """Runs trials and remembers them. Raises OutOfTime when ``seconds`` are spent."""

    def __init__(self, subject: Subject, real: bool, seconds: float = 20.0):
        self.subject, self.real, self.left = subject, real, seconds
        self.count, self.last = 0, 0.0
        self._seen: dict[tuple[tuple[str, int], ...], Trial | None] = {}

    def __call__(self, values: Mapping[str, int]) -> Trial | None:
        """The trial, or None where the problem refuses these sizes."""
        key = tuple(sorted(values.items()))
        if key not in self._seen:
            if self.left <= 0:
                raise OutOfTime
            self.count += 1
            start = time.monotonic()
            try:
                self._seen[key] = run_trial(self.subject, values, real=self.real)
            except (*Refusals, NeedsValues):
                self._seen[key] = None
            self.last = time.monotonic() - start
            self.left -= self.last
        return self._seen[key]


def infer(
    probe: Prober, base: Trial, names: Mapping[str, str], *, fixed: Iterable[str] = (), most_knobs: int = 24
) -> Inferred:
    """Dims of a problem. ``names``: the author's name of each knob, or "". ``fixed``: knobs to leave alone."""
    result = Inferred(base)
    knobs = {k: v for k, v in probe.subject.knobs.items() if k not in set(fixed)}
    if len(knobs) > most_knobs:
        result.notes.append(f"only the first {most_knobs} of {len(knobs)} integer constants were varied")
        knobs = dict(itertools.islice(knobs.items(), most_knobs))
    try:
        for group in _groups(probe, base, knobs):
            symbol = _symbol(probe, base, group, knobs[group[0]], names)
            if symbol is not None and _is_dim(symbol, base, named=any(names.get(k) for k in group)):
                result.symbols[_unique(symbol.name, result.symbols)] = symbol
    except OutOfTime:
        result.notes.append("time for trials ran out; integers not tried by then stay as given")
    try:
        _keep_independent(probe, base, result)
    except OutOfTime:
        result.notes.append("time for trials ran out before all sizes were moved together; only one varies")
        result.symbols = dict(itertools.islice(result.symbols.items(), 1))
        result.shapes = _expressions(base, result.symbols, None)
        if any(e is None for c, e in result.shapes.items() if c[0] in ("in", "bound")):
            result.symbols, result.shapes = {}, _expressions(base, {}, None)
    for name, symbol in result.symbols.items():
        result.dims[name] = _range(probe, symbol)
    _raise_low(probe, result)
    return result


def _groups(probe: Prober, base: Trial, knobs: Mapping[str, int]) -> list[tuple[str, ...]]:
    """Knobs that can move: alone, or with others of the same value."""
    groups: list[tuple[str, ...]] = []
    refused: list[str] = []
    moves = {}
    for k, v in knobs.items():
        found = _step(probe, base, (k,), v)
        if found is None:
            refused.append(k)
        else:
            moves[k] = moved(base, found[1])
    # An index bound and a size of equal value belong together although fake tensors can't see an index out of range.
    bounds = [k for k, m in moves.items() if m and all(c[0] == "bound" for c in m)]
    for k in bounds:
        partners = [o for o in knobs if o != k and knobs[o] == knobs[k] and (o in refused or moves.get(o))]
        refused = [*refused, k, *[p for p in partners if p not in refused]]
    refused = list(dict.fromkeys(refused))
    groups += [(k,) for k, m in moves.items() if m and k not in refused]
    for value in dict.fromkeys(knobs[k] for k in refused):
        groups += _joint(probe, base, [k for k in refused if knobs[k] == value], value, set(bounds))
    order = list(knobs)
    return sorted(groups, key=lambda g: order.index(g[0]))


def _joint(probe: Prober, base: Trial, equal: list[str], value: int, bounds: set[str]) -> list[tuple[str, ...]]:
    """Smallest sets of equal knobs that may move together."""
    found: list[tuple[str, ...]] = []
    left = equal
    for size in range(2, len(equal) + 1):
        if size > 3 and size != len(equal):
            continue
        for combination in itertools.combinations(left, size):
            if set(combination) <= set(left) and _step(probe, base, combination, value) is not None:
                found.append(combination)
                left = [k for k in left if k not in combination]
    return found


def _step(probe: Prober, base: Trial, group: tuple[str, ...], value: int) -> tuple[int, Trial] | None:
    """The least step that the problem takes, and its trial."""
    step = 1
    while step <= value:
        if value % step == 0:
            trial = probe(dict.fromkeys(group, value + step))
            if trial is not None and trial.form() == base.form():
                return step, trial
        if step == 1 and value % 2 == 1 and value > 64:
            return None
        step *= 2
    return None


def moved(base: Trial, other: Trial) -> frozenset[Coordinate]:
    """Coordinates that differ between two trials; ``("init", "", 0)`` if the constructor's arguments do."""
    before, after = base.coordinates(), other.coordinates()
    different = {c for c in before if before[c] != after.get(c)}
    return frozenset(different | ({("init", "", 0)} if base.init != other.init else set()))


def _symbol(probe: Prober, base: Trial, group: tuple[str, ...], value: int, names: Mapping[str, str]) -> Symbol | None:
    found = _step(probe, base, group, value)
    if found is None:
        return None
    step, near = found
    far = probe(dict.fromkeys(group, 2 * value))
    if far is not None and far.form() != base.form():
        far = None
    touched = moved(base, near) | (moved(base, far) if far else frozenset())
    name = next((names[k] for k in group if names.get(k)), "")
    if not name:
        spots = sorted(c for c in touched if c[0] == "in") or sorted(c for c in touched if c[0] in ("bound", "out"))
        name = f"{spots[0][1]}_{spots[0][2]}".replace(".", "_") if spots else group[0]
    return Symbol(name, group, value, step, near, far, touched)


def _is_dim(symbol: Symbol, base: Trial, *, named: bool) -> bool:
    before, after = base.coordinates(), symbol.near.coordinates()
    if not any(c[0] in ("in", "out", "bound") for c in symbol.moved):
        # A hidden size: it shows in the weights alone. Small ones may as well be a kernel size or a head count.
        weights = [c for c in symbol.moved if c[0] == "state"]
        return symbol.value >= 32 and any(
            before[c] == symbol.value and after.get(c) == symbol.value + symbol.step for c in weights
        )
    if symbol.value == 1 and not named:
        return False
    if any(c[0] == "scalar" for c in symbol.moved) and not any(c[0] == "in" for c in symbol.moved):
        return False
    if not any(c[0] in ("init", "state") for c in symbol.moved):
        return any(c[0] == "in" for c in symbol.moved)
    exact = {c for c in symbol.moved if c[0] in ("in", "out", "bound")
             and before[c] == symbol.value and after[c] == symbol.value + symbol.step}  # fmt: skip
    return bool(exact)


def _unique(name: str, taken: Iterable[str]) -> str:
    clean = name if name.isidentifier() and name not in ("min", "max") else f"n_{name}"
    return next(
        n for n in itertools.chain([clean], (f"{clean}_{i}" for i in itertools.count(2))) if n not in set(taken)
    )


def _keep_independent(probe: Prober, base: Trial, result: Inferred) -> None:
    """Move all dims at once; drop those that the others don't bear, and those whose axes have no expression."""

    def together(symbols: Mapping[str, Symbol]) -> tuple[dict[str, int], Trial | None]:
        sizes = {n: s.value + s.step * (i % 3 + 1) for i, (n, s) in enumerate(symbols.items(), 1)}
        trial = probe({k: v for n, v in sizes.items() for k in symbols[n].knobs})
        return sizes, trial if trial is not None and trial.form() == base.form() else None

    kept = dict(result.symbols)
    if kept and together(kept)[1] is None:
        kept = {}
        for name, s in result.symbols.items():
            if together({**kept, name: s})[1] is None:
                result.notes.append(f"'{name}' does not vary independently of {', '.join(kept)}; it stays {s.value}")
            else:
                kept[name] = s
    while True:
        sizes, joint = together(kept) if kept else ({}, None)
        result.shapes = _expressions(base, kept, (sizes, joint) if joint is not None else None)
        bad = [c for c, e in result.shapes.items() if e is None and c[0] in ("in", "bound")]
        bad += [c for c in result.shapes if c[0] == "scalar" and any(c in s.moved for s in kept.values())]
        if not bad:
            break
        guilty = [n for n, s in kept.items() if bad[0] in s.moved] or list(kept)
        place = {"in": f"axis {bad[0][2]} of", "bound": "the range of", "scalar": "the number"}[bad[0][0]]
        result.notes.append(f"no expression fits {place} '{bad[0][1]}'; {', '.join(guilty)} stay as given")
        kept = {n: s for n, s in kept.items() if n not in guilty}
    result.symbols = kept


def _expressions(
    base: Trial, symbols: Mapping[str, Symbol], joint: tuple[dict[str, int], Trial] | None
) -> dict[Coordinate, str | int | None]:
    given = {n: s.value for n, s in symbols.items()}
    trials: list[tuple[dict[str, int], Trial]] = [(given, base)]
    for n, s in symbols.items():
        trials.append(({**given, n: s.value + s.step}, s.near))
        if s.far is not None:
            trials.append(({**given, n: 2 * s.value}, s.far))
    if joint is not None:
        trials.append(joint)
    tables = [(d, t.coordinates()) for d, t in trials]
    return {
        c: fit([(d, table[c]) for d, table in tables if c in table], [n for n, s in symbols.items() if c in s.moved])
        for c in tables[0][1]
    }


def _range(probe: Prober, symbol: Symbol) -> Dim:
    """From the least size that runs to a greatest that was shown to run."""
    try:
        low = _least(lambda size: probe(symbol.at(size)) is not None, symbol.value, symbol.step)
    except OutOfTime:
        low = symbol.value
    high = 2 * symbol.value if symbol.far is not None else symbol.value + symbol.step
    wide = min(8 * symbol.value, ENOUGH) // symbol.step * symbol.step
    if symbol.far is not None and wide > high and probe(symbol.at(wide)) is not None:
        high = wide
    return Dim(low, high, multiple_of=symbol.step)


def _least(runs: Callable[[int], bool], value: int, step: int) -> int:
    """Least multiple of ``step`` that runs, taken as monotone."""
    bad, good = 0, value // step
    if good * step != value:
        return value
    if good >= 1 and runs(step):
        return step
    bad = 1
    while good - bad > 1:
        middle = (bad + good) // 2
        if runs(middle * step):
            good = middle
        else:
            bad = middle
    return good * step


def _raise_low(probe: Prober, result: Inferred) -> None:
    """If not all least sizes run together, say so: a derived shape that is refused is not held against a kernel."""
    lows = {n: d.low for n, d in result.dims.items()}
    try:
        legal = not lows or probe(result.knobs(lows)) is not None
    except OutOfTime:
        return
    if not legal:
        result.notes.append(
            "not every combination of least sizes is legal: " + ", ".join(f"{n}={v}" for n, v in lows.items())
        )
