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
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import torch

from ...errors import TaskError, Unsupported
from ...ir.domains.index_fit import Forms
from ...ir.values import ELEM
from ...task.tensors import TensorSpec
from .. import sizes
from ..child.session import Outcome
from ._beyond import MEMORY, grown
from ._virtual import PROMISED, SLOT, call

if TYPE_CHECKING:
    from ..examination import Examination

KEY = "launches at symbolic sizes"
SECONDS = 0.8  # for the questions of one gate about a kind of launch
MORE_S = 0.2  # after which no other kind is asked about
OBSERVE_S = 0.2
JOINT = 9
GRACE_S = 12.0  # for what the solver does after its time
FEWEST = 5  # places from which a form is told
LONGEST = 200_000  # characters of IR


@dataclass
class Family:
    """Launches of one function at one step of a call: ``launches`` as data, each at its place (sizes)."""

    places: list[dict[str, int]] = field(default_factory=list)
    launches: list[dict[str, Any]] = field(default_factory=list)
    forms: Forms | None = None


@dataclass
class Group:
    """Launches of a family with the same constants."""

    function: str
    constants: dict[str, str]
    family: Family
    places: list[dict[str, int]] = field(default_factory=list)
    launches: list[dict[str, Any]] = field(default_factory=list)
    forms: Forms | None = None
    spec: dict[str, Any] | None = None
    trouble: str = ""

    @property
    def label(self) -> str:
        shown = ", ".join(f"{n}={v}" for n, v in self.constants.items() if v.isdigit() and n.isupper())
        return f"{self.function} ({shown})" if shown else self.function


@dataclass
class Symbolic:
    """``groups`` by index in a call, function and constants; ``reason``: why there are none; ``calls``: sizes at which
    the launcher was seen; ``cut``: there was no time to see it at all powers of two."""

    groups: dict[tuple[Any, ...], Group] = field(default_factory=dict)
    families: dict[tuple[Any, ...], Family] = field(default_factory=dict)
    reason: str = ""
    calls: int = 0
    cut: bool = False
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
    if find_spec("z3") is None:
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


def in_order(found: Symbolic) -> list[Group]:
    """Groups, those of the most sizes first."""
    return sorted(found.groups.values(), key=lambda g: -len(g.places))


# -- observing


def _observe(exam: Examination, found: Symbolic) -> None:
    until = time.monotonic() + OBSERVE_S
    dtype = exam.workload().dtype or exam.dtypes()[0]
    counts: set[int] = set()
    for dims, needed in places(exam):
        if time.monotonic() > until and not needed:
            found.cut = True
            break
        outcome = call(exam, dims, dtype, describe="numbers")
        launches = [n["described"] for n in outcome.launches if "described" in n]
        if outcome.trouble is not None or len(launches) < len(outcome.launches):
            found.reason = _words(outcome, dims)
            return
        counts.add(len(launches))
        found.calls += 1
        _sort(found, dims, launches)
    _merge(found)
    if not found.groups:
        found.reason = "no launch at these sizes"
    elif len(counts) > 1:
        found.reason = "how many launches there are depends on the sizes"


def _sort(found: Symbolic, dims: dict[str, int], launches: list[dict[str, Any]]) -> None:
    """The launches of one call to their groups."""
    for i, n in enumerate(launches):
        family = found.families.setdefault((i, n["function"]), Family())
        slots = tuple((name, kind) for name, kind, _ in n["slots"])
        key = (i, n["function"], slots, tuple(sorted(n["constexprs"].items())))
        n["by name"] = {name: value for name, _, value in n["slots"]}
        group = found.groups.setdefault(key, Group(n["function"], n["constexprs"], family))
        for seen in (family, group):
            seen.places.append(dims)
            seen.launches.append(n)


def _words(outcome: Outcome, dims: dict[str, int]) -> str:
    message = outcome.trouble.message.splitlines()[0] if outcome.trouble and outcome.trouble.message else ""
    at = ", ".join(f"{n}={v}" for n, v in dims.items())
    return f"the launcher does not run without values at {at} ({message or 'it stopped'})"


def places(exam: Examination) -> Iterator[tuple[dict[str, int], bool]]:
    """Sizes to look at the launcher, and whether they have to be: the given ones, each dim as large as it gets, joint
    draws; then each dim along its powers of two."""
    sheet, rng = exam.sheet, random.Random(exam.seed_for("symbolic"))
    given, seen = dict(exam.workload().dims), set()
    for dims, needed in _wanted(exam, given, rng):
        key = tuple(sorted(dims.items())) if dims else ()
        if not dims or key in seen or min(dims.values()) < 1 or not sizes.legal(sheet, dims):
            continue
        if sizes.nbytes(sheet, dims, exam.workload().dtype) <= MEMORY:
            seen.add(key)
            yield dims, needed


def _wanted(
    exam: Examination, given: dict[str, int], rng: random.Random
) -> Iterator[tuple[dict[str, int] | None, bool]]:
    sheet = exam.sheet
    yield given, True
    yield from ((dict(w.dims), True) for w in sheet.workloads[1:4])
    low = sizes.small(sheet, given)
    yield from ((grown(exam, low, n, exam.dtypes()[0]), True) for n in sheet.dims)
    yield from ((_drawn(sheet, given, rng, far=i % 3 == 2), True) for i in range(JOINT))
    for power in range(21):
        for name, spec in sheet.dims.items():
            size = sizes.near(spec, (1 << power) + 1)
            yield sizes.put(sheet, _drawn(sheet, given, rng) or given, name, size) if size else None, False


def _drawn(sheet: Any, given: dict[str, int], rng: random.Random, far: bool = False) -> dict[str, int] | None:
    """Sizes near the given ones; ``far``: of any order of magnitude."""
    dims: dict[str, int] = dict(given)
    for name, spec in sheet.dims.items():
        near = rng.randint(2, max(3, min(spec.high, 3 * max(given.get(name, 2), 8))))
        size = sizes.near(spec, int(2 ** rng.uniform(1, spec.high.bit_length())) if far else near)
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


def ask(exam: Examination, group: Group, question: str, seconds: float) -> dict[str, Any]:
    """What the solver says about a group (``ir/domains/index_launch.answer``). It runs in the evaluator's process."""
    if group.spec is None and not group.trouble:
        try:
            group.spec = _spec(exam, group)
        except (Unsupported, TaskError) as e:
            group.trouble = str(e)
    if group.spec is None:
        return {"trouble": group.trouble}
    evaluator = exam.session(slot=SLOT).evaluator
    assert evaluator is not None
    head = {"do": "index", "spec": group.spec, "question": question, "seconds": seconds}
    answer, _ = evaluator.ask_raw(head, seconds=seconds + GRACE_S)
    if "error" in answer:
        exam.session(fresh=True, slot=SLOT)  # whatever is asked next doesn't wait for it
        return {"trouble": f"the solver's process gave no answer: {answer['error'].get('message', '')}"}
    return answer


def _spec(exam: Examination, group: Group) -> dict[str, Any]:
    """The launch at symbolic sizes as data. Raises Unsupported where a number is no known function of the sizes."""
    text = _text(exam, group)
    if not text or len(text) > LONGEST:
        raise Unsupported("its IR is too long to be followed" if text else "its IR could not be had")
    args, storages = _arguments(exam, group)
    grid = [_number(exam, group, f"grid axis {'xyz'[i]}", lambda n, i=i: n["grid"][i]) for i in range(3)]
    dims = {n: [d.low, d.high, d.multiple_of, d.sizes and list(d.sizes)] for n, d in exam.sheet.dims.items()}
    return {"text": text, "dims": dims, "constraints": list(exam.sheet.constraints), "picked": _picked(exam, group),
            "args": args, "grid": grid, "storages": storages, "memory": MEMORY}  # fmt: skip


def _text(exam: Examination, group: Group) -> str:
    dtype = exam.workload().dtype or exam.dtypes()[0]
    dims = max(group.places, key=lambda d: sum(n % 16 != 0 for n in d.values()))
    outcome = call(exam, dims, dtype, describe="text")
    seen = [n["described"] for n in outcome.launches if "described" in n]
    return next((n["text"] for n in seen if (n["function"], n["constexprs"]) == (group.function, group.constants)), "")


def _number(exam: Examination, group: Group, what: str, of: Any) -> str:
    """A number of a launch as a function of the sizes: of all launches of the family, else of the group's."""
    for seen in (group.family, group):
        if len(seen.places) < FEWEST:
            continue
        if seen.forms is None:
            seen.forms = _forms(exam, group, seen.places)
        numbers = [of(n) for n in seen.launches]
        if None not in numbers and (form := seen.forms.value(numbers)) is not None:
            return str(form)
    raise Unsupported(f"{what} is no function of the sizes that is recognised")


def _forms(exam: Examination, group: Group, places: list[dict[str, int]]) -> Forms:
    shapes = [str(e) for s in exam.sheet.inputs.values() if isinstance(s, TensorSpec) for e in s.shape]
    numbers = [int(v) for v in group.constants.values() if v.lstrip("-").isdigit()]
    names = {n: [d[n] for d in places] for n in exam.sheet.dims}
    return Forms(names, [s for s in dict.fromkeys(shapes) if not s.isdigit()], numbers)


def _picked(exam: Examination, group: Group) -> list[Any]:
    """What holds of the sizes where the launcher picks this group's constants: those that equal a size, or the next
    power of two of one. Nothing is taken to hold of the others."""
    alike = [g for g in symbolic(exam).groups.values()
             if g.function == group.function and g.constants.keys() == group.constants.keys()]  # fmt: skip
    places = [p for g in alike for p in g.places]
    tried = _forms(exam, group, places) if len(places) >= FEWEST else None
    conditions: list[Any] = []
    for name, text in group.constants.items():
        if any(name in n["by name"] for n in group.family.launches):  # an argument that is 1 here, and so a constant
            form = _number(exam, group, f"argument '{name}'", lambda n, a=name: _given(n, a))
            conditions.append([form, int(text), int(text)])
            continue
        seen = [g.constants[name] for g in alike for _ in g.places]
        if tried is not None and len(set(seen)) > 1 and all(v.lstrip("-").isdigit() for v in seen):
            conditions += _where_picked(tried, [int(v) for v in seen], int(text))
    return conditions


def _where_picked(tried: Forms, numbers: list[int], mine: int) -> list[Any]:
    """Where a constant is ``mine``, if the numbers seen are a form or the next power of two of one."""
    if (form := tried.value(numbers)) is not None:
        return [[form, mine, mine]]
    if (power := tried.power(numbers)) is not None:
        form, least, most = power
        return [[form, None if mine == least else mine // 2 + 1, None if mine == most else mine]]
    return []


def _arguments(exam: Examination, group: Group) -> tuple[list[Any], list[Any]]:
    """Arguments and storages for the spec."""
    order: dict[int, int] = {}
    args: list[Any] = []
    held: list[list[Any]] = []
    for name, kind, first in group.launches[0]["slots"]:
        if not isinstance(first, list):
            plain = first is None or kind.startswith("fp")
            number = "" if plain else _number(exam, group, f"argument '{name}'", lambda n, a=name: _given(n, a))
            args.append(["float"] if plain else ["int", number, kind])
            continue
        column = [n["by name"].get(name) for n in group.family.launches]
        if any(not isinstance(c, list) or (c[0], c[2]) != (first[0], first[2]) for c in column):
            raise Unsupported(f"argument '{name}' does not always lie in the same storage")
        if kind.startswith("tensordesc"):
            raise Unsupported("a tensor descriptor made by the launcher")
        if first[0] not in order:
            order[first[0]] = len(held)
            nbytes = _number(exam, group, f"the size of '{name}'", lambda n, a=name: n["by name"][a][3])
            held.append([nbytes, [], _promised(exam, first[4]), bool(first[4])])
        held[order[first[0]]][1].append(name)
        start = _number(exam, group, f"the start of '{name}'", lambda n, a=name: n["by name"][a][1])
        args.append(["pointer", order[first[0]], start, ELEM[getattr(torch, first[2])]])
    return args, held


def _given(launch: dict[str, Any], name: str) -> int | None:
    """An argument's number, also where it was 1 and so became a constant."""
    found = launch["by name"].get(name, launch["constexprs"].get(name))
    return int(found) if isinstance(found, int) or (isinstance(found, str) and found.lstrip("-").isdigit()) else None


def _promised(exam: Examination, name: str) -> list[str] | None:
    """The range of integers that the contract promises of an input, both ends included."""
    spec = exam.sheet.inputs.get(name)
    if not isinstance(spec, TensorSpec) or spec.values.kind not in PROMISED or spec.mutated:
        return None
    if spec.values.kind == "bool":
        return ["0", "1"]
    if spec.values.kind == "permutation":
        return ["0", f"{spec.shape[-1]}-1"]
    low, high = (v if isinstance(v, str) else str(int(v)) for v in (spec.values.low, spec.values.high))
    return [low, f"({high})-1"]
