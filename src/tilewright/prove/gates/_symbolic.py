"""Launches at symbolic sizes: what ``bounds`` and ``races`` ask the solver, shared between them.

The candidate's Python runs at some dozens of sizes on tensors without memory. Launches of one function with the same
constants are one group; each number of a group (an argument, a grid axis, the bytes of a storage) is taken as a function
of the sizes that gives what was seen at all of them (``ir/domains/index_forms.py``). The IR of the group is then walked
with symbolic sizes, program ids and positions, and each question is put to the solver. What a launcher does at sizes
where it wasn't seen is an assumption; the claims say at how many it was seen.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from ...errors import TaskError, Unsupported
from ...task.tensors import TensorSpec
from .. import sizes
from ._beyond import MEMORY
from ._virtual import PROMISED, call

if TYPE_CHECKING:
    from ..examination import Examination

KEY = "launches at symbolic sizes"
SECONDS = 0.45  # for the questions of one gate
OBSERVE_S = 0.2
JOINT = 7
FEWEST = 5  # places from which a form is told
LONGEST = 200_000  # characters of IR


@dataclass
class Family:
    """Launches of one function with the same runtime arguments: ``launches`` as data, each at its place (sizes)."""

    places: list[dict[str, int]] = field(default_factory=list)
    launches: list[dict[str, Any]] = field(default_factory=list)
    forms: Any = None


@dataclass
class Group:
    """Launches of a family with the same constants."""

    function: str
    constants: dict[str, str]
    family: Family
    places: list[dict[str, int]] = field(default_factory=list)
    launches: list[dict[str, Any]] = field(default_factory=list)
    questions: Any = None
    trouble: str = ""

    @property
    def label(self) -> str:
        shown = ", ".join(f"{n}={v}" for n, v in self.constants.items() if v.isdigit() and n.isupper())
        return f"{self.function} ({shown})" if shown else self.function


@dataclass
class Symbolic:
    """``groups`` by index in a call, function and constants; ``reason``: why there are none; ``calls``: sizes at which
    the launcher was seen."""

    groups: dict[tuple[Any, ...], Group] = field(default_factory=dict)
    families: dict[tuple[Any, ...], Family] = field(default_factory=dict)
    reason: str = ""
    calls: int = 0
    seconds: float = 0.0


def symbolic(exam: Examination) -> Symbolic:
    """The groups of an examination, found once."""
    if KEY not in exam.memory:
        started = time.monotonic()
        found = exam.memory[KEY] = Symbolic(reason=_absent(exam))
        if not found.reason:
            _observe(exam, found)
        found.seconds = time.monotonic() - started
    return exam.memory[KEY]


def _absent(exam: Examination) -> str:
    """Why no symbolic sizes are tried."""
    try:
        import z3  # noqa: F401
    except ImportError:
        return "z3 is not installed (pip install 'tilewright[prove]')"
    sheet = exam.sheet
    if not sheet.dims or not sheet.inputs or not any(d.low < d.high for d in sheet.dims.values()):
        return "the task has no symbolic dims"
    if sheet.module_state:
        return "the task's modules hold state of a fixed size"
    if sheet.contract.inferred:
        return "the contract is inferred: it promises the sizes that are given"
    if any(isinstance(s, TensorSpec) and s.values.kind == "custom" for s in sheet.inputs.values()):
        return "the task makes its inputs itself"
    return ""


# -- observing


def _observe(exam: Examination, found: Symbolic) -> None:
    until = time.monotonic() + OBSERVE_S
    dtype = exam.workload().dtype or exam.dtypes()[0]
    trouble = ""
    for dims in places(exam):
        if time.monotonic() > until and found.calls >= JOINT:
            break
        outcome = call(exam, dims, dtype, describe="numbers")
        launches = [n["described"] for n in outcome.launches if "described" in n]
        if outcome.trouble is not None or len(launches) < len(outcome.launches):
            trouble = trouble or _words(outcome)
            if outcome.trouble is not None and outcome.trouble.kind in ("crash", "timeout", "exit"):
                break
            continue
        found.calls += 1
        for i, n in enumerate(launches):
            slots = tuple((name, kind) for name, kind, _ in n["slots"])
            family = found.families.setdefault((i, n["function"], slots), Family())
            key = (i, n["function"], slots, tuple(sorted(n["constexprs"].items())))
            group = found.groups.setdefault(key, Group(n["function"], n["constexprs"], family))
            for seen in (family, group):
                seen.places.append(dims)
                seen.launches.append(n)
    _merge(found)
    if not found.groups:
        found.reason = trouble or "no launch at these sizes"


def _words(outcome: Any) -> str:
    message = outcome.trouble.message.splitlines()[0] if outcome.trouble and outcome.trouble.message else ""
    return f"the launcher does not run on tensors without values ({message or 'it stopped'})"


def places(exam: Examination) -> Iterator[dict[str, int]]:
    """Sizes to look at the launcher: the given ones, joint draws, then each dim along its powers of two."""
    sheet, rng, seen = exam.sheet, random.Random(exam.seed_for("symbolic")), set()
    given = dict(exam.workload().dims)

    def fresh(dims: dict[str, int] | None) -> Iterator[dict[str, int]]:
        key = tuple(sorted(dims.items())) if dims else ()
        if dims and key not in seen and min(dims.values()) > 0 and sizes.legal(sheet, dims):
            if sizes.nbytes(sheet, dims, exam.workload().dtype) <= MEMORY:
                seen.add(key)
                yield dims

    yield from fresh(given)
    for w in sheet.workloads[1:]:
        yield from fresh(dict(w.dims))
    for _ in range(JOINT):
        yield from fresh(_drawn(sheet, given, rng))
    for power in range(21):
        for name, spec in sheet.dims.items():
            size = sizes.near(spec, (1 << power) + 1)
            yield from fresh(sizes.put(sheet, _drawn(sheet, given, rng) or given, name, size) if size else None)


def _drawn(sheet: Any, given: dict[str, int], rng: random.Random) -> dict[str, int] | None:
    dims: dict[str, int] = dict(given)
    for name, spec in sheet.dims.items():
        size = sizes.near(spec, rng.randint(2, max(3, min(spec.high, 3 * max(given.get(name, 2), 8)))))
        dims = (sizes.put(sheet, dims, name, size) if size else None) or dims
    return dims


def _merge(found: Symbolic) -> None:
    """Leaves out a group that is another one with some argument fixed at 1: the same launch, specialised."""
    keys = list(found.groups)
    for key in keys:
        mine = found.groups[key].constants
        for other in keys:
            theirs = found.groups[other].constants if other in found.groups else mine
            more = set(mine.items()) - set(theirs.items())
            if key[:2] == other[:2] and set(theirs.items()) < set(mine.items()) and all(v == "1" for _, v in more):
                found.groups.pop(key, None)


# -- from a group to questions


def in_order(found: Symbolic) -> list[Group]:
    """Groups, those of the most sizes first."""
    return sorted(found.groups.values(), key=lambda g: -len(g.places))


def questions(exam: Examination, group: Group, seconds: float) -> Any:
    """The solver's questions about a group; None, with the group's ``trouble``, where there are none."""
    if group.questions is None and not group.trouble:
        from ...ir.domains.index_walk import Beyond

        try:
            group.questions = _walked(exam, group, seconds)
        except (Beyond, Unsupported, TaskError) as e:
            group.trouble = str(e)
    if group.questions is not None:
        group.questions.until = time.monotonic() + seconds
    return group.questions


def _walked(exam: Examination, group: Group, seconds: float) -> Any:
    from ...ir.domains.index_queries import Questions
    from ...ir.domains.index_walk import Beyond
    from ...ir.readers import ttir

    text = _text(exam, group)
    if not text or len(text) > LONGEST:
        raise Beyond("its IR is too long to be followed" if text else "its IR could not be had")
    launch, names = _launch(exam, group, ttir.read(text))
    return Questions(launch, names, seconds)


def _text(exam: Examination, group: Group) -> str:
    dtype = exam.workload().dtype or exam.dtypes()[0]
    dims = max(group.places, key=lambda d: sum(n % 16 != 0 for n in d.values()))
    outcome = call(exam, dims, dtype, describe="text")
    return next((n["described"]["text"] for n in outcome.launches if "described" in n
                 and n["described"]["function"] == group.function and n["described"]["constexprs"] == group.constants), "")  # fmt: skip


def _launch(exam: Examination, group: Group, program: Any) -> tuple[Any, dict[str, Any]]:
    """The launch at symbolic sizes, and the sizes by name."""
    from ...ir.domains import index_forms as forms
    from ...ir.domains.index_walk import SymbolicLaunch

    known, base = _sizes(exam)
    base += _picked(exam, group, known)
    number = partial(_number, exam, group, known)
    args, storages = _arguments(exam, group, number, known)
    for a, s in zip(args, group.launches[0]["slots"], strict=True):
        if s[1] in ("i32", "i64") and hasattr(a, "low"):
            base.append(forms.within(a, *((-(2**31), 2**31 - 1) if s[1] == "i32" else (-(2**63), 2**63 - 1))))
    grid = tuple(number(f"grid axis {'xyz'[i]}", lambda n, i=i: n["grid"][i]) for i in range(3))
    base += _affordable(storages)
    ranges = {n: (v.low, v.high) for n, v in known.items()}
    held = tuple(b for b in base if b is not True)
    return SymbolicLaunch(program, args, grid, storages, held, ranges), {n: v.e for n, v in known.items()}


def _number(exam: Examination, group: Group, known: dict[str, Any], what: str, of: Any) -> Any:
    """A number of a launch as a function of the sizes: of all launches of the family, else of the group's."""
    from ...ir.domains import index_forms as forms

    for seen in (group.family, group):
        if len(seen.places) < FEWEST:
            continue
        if seen.forms is None:
            seen.forms = _forms(exam, group, seen.places)
        form = seen.forms.value([of(n) for n in seen.launches])
        out = None if form is None else forms.value(form, known)
        if out is not None:
            return out
    raise Unsupported(f"{what} is no function of the sizes that is recognised")


def _forms(exam: Examination, group: Group, places: list[dict[str, int]]) -> Any:
    from ...ir.domains.index_forms import Forms

    shapes = [str(e) for s in exam.sheet.inputs.values() if isinstance(s, TensorSpec) for e in s.shape]
    numbers = [int(v) for v in group.constants.values() if v.lstrip("-").isdigit()]
    names = {n: [d[n] for d in places] for n in exam.sheet.dims}
    return Forms(names, [s for s in dict.fromkeys(shapes) if not s.isdigit()], numbers)


def _sizes(exam: Examination) -> tuple[dict[str, Any], list[Any]]:
    """The dims as numbers of the index domain, and what holds of them."""
    import z3

    from ...ir.domains import index_forms as forms

    known, base = {}, []
    for n, spec in exam.sheet.dims.items():
        v = known[n] = forms.symbol(
            n, min(spec.sizes) if spec.sizes else spec.low, max(spec.sizes) if spec.sizes else spec.high
        )
        if v.fixed:
            continue
        base += [v.e >= v.low, v.e <= v.high]
        if spec.sizes:
            base.append(z3.Or([v.e == s for s in spec.sizes]))
        if spec.multiple_of > 1:
            base.append(v.e % spec.multiple_of == 0)
    base += [forms.condition(c, known) for c in exam.sheet.constraints]
    return known, base


def _picked(exam: Examination, group: Group, known: dict[str, Any]) -> list[Any]:
    """What holds of the sizes where the launcher picks this group's constants: those that equal a size, or the next
    power of two of one. Nothing is taken to hold of the others."""
    from ...ir.domains import index_forms as forms

    alike = [
        g
        for g in symbolic(exam).groups.values()
        if g.function == group.function and g.constants.keys() == group.constants.keys()
    ]
    places = [p for g in alike for p in g.places]
    conditions: list[Any] = []
    tried = _forms(exam, group, places) if len(places) >= FEWEST else None
    for name, text in group.constants.items():
        seen = [g.constants[name] for g in alike for _ in g.places]
        if tried is None or len(set(seen)) < 2 or not all(v.lstrip("-").isdigit() for v in seen):
            continue
        numbers, mine = [int(v) for v in seen], int(text)
        if (form := tried.value(numbers)) is not None and (v := forms.value(form, known)) is not None:
            conditions.append(forms.within(v, mine, mine))
        elif (power := tried.power(numbers)) is not None and (v := forms.value(power[0], known)) is not None:
            least, most = power[1:]
            low = v.low if mine == least else mine // 2 + 1
            conditions.append(forms.within(v, low, v.high if mine == most else mine))
    return conditions


def _affordable(storages: Any) -> list[Any]:
    """Inputs and outputs fit the target's memory."""
    from ...ir.domains import index

    total = index.num(0)
    for s in storages:
        total = index.add(total, s.nbytes)
    return [True] if total.high <= MEMORY else [total.e <= MEMORY]


def _arguments(exam: Examination, group: Group, number: Any, known: dict[str, Any]) -> tuple[Any, Any]:
    from ...ir.domains.index import OPAQUE, Spot
    from ...ir.domains.index_walk import Storage

    columns = [[n["slots"][i] for n in group.family.launches] for i in range(len(group.launches[0]["slots"]))]
    order: dict[int, int] = {}
    args: list[Any] = []
    held: list[list[Any]] = []
    for i, column in enumerate(columns):
        name, kind, first = column[0]
        if not isinstance(first, list):
            plain = first is None or kind.startswith("fp")
            args.append(OPAQUE if plain else number(f"argument '{name}'", lambda n, i=i: n["slots"][i][2]))
            continue
        if any(c[2][0] != first[0] or c[2][2] != first[2] for c in column):
            raise Unsupported(f"argument '{name}' does not always lie in the same storage")
        if first[0] not in order:
            order[first[0]] = len(held)
            nbytes = number(f"the size of '{name}'", lambda n, i=i: n["slots"][i][2][3])
            held.append([nbytes, [], _promised(exam, first[4], known)])
        held[order[first[0]]][1].append(name)
        if kind.startswith("tensordesc"):
            raise Unsupported("a tensor descriptor made by the launcher")
        args.append(
            Spot(order[first[0]], number(f"the start of '{name}'", lambda n, i=i: n["slots"][i][2][1]), _elem(first[2]))
        )
    return tuple(args), tuple(Storage(n, tuple(names), promise) for n, names, promise in held)


def _elem(dtype: str) -> str:
    import torch

    from ...ir.values import ELEM

    return ELEM[getattr(torch, dtype)]


def _promised(exam: Examination, name: str, known: dict[str, Any]) -> Any:
    """The range of integers that the contract promises of an input."""
    from ...ir.domains import index
    from ...ir.domains.index_forms import value

    spec = exam.sheet.inputs.get(name)
    if not isinstance(spec, TensorSpec) or spec.values.kind not in PROMISED or spec.mutated:
        return None
    if spec.values.kind == "bool":
        return index.num(0), index.num(1)
    if spec.values.kind == "permutation":
        last = value(str(spec.shape[-1]), known)
        return last and (index.num(0), index.sub(last, index.num(1)))
    low, high = (value(v if isinstance(v, str) else int(v), known) for v in (spec.values.low, spec.values.high))
    return None if low is None or high is None else (low, index.sub(high, index.num(1)))
