"""A launch at symbolic sizes from plain data, and what is asked about it: the child's side of ``prove/gates/_symbolic.py``.

The data (``spec``): ``text`` the IR; ``dims`` by name [least, greatest, multiple of, list of sizes or None];
``constraints`` over them; ``picked`` [form, least, greatest] that hold where the launcher makes this launch; ``args`` in the
order of the IR's, ["int", form, Triton's type], ["pointer", storage, form of the offset, element] or ["float"];
``grid`` three forms; ``storages`` [form of the bytes, names, range of its integers or None, whether it is an input];
``memory`` in bytes.
"""

from __future__ import annotations

from typing import Any

import z3

from ...errors import Unsupported
from ..readers import ttir
from . import index, index_forms
from .index import OPAQUE, Num, Spot
from .index_loops import Beyond
from .index_queries import Questions
from .index_walk import Storage, SymbolicLaunch

INTEGERS = {"i32": (-(2**31), 2**31 - 1), "i64": (-(2**63), 2**63 - 1)}


def answer(spec: dict[str, Any], question: str, seconds: float, held: dict[str, Any], key: str) -> dict[str, Any]:
    """What the solver says to ``bounds``, ``races`` or ``coverage`` about a launch: how much is ``proved``, ``shown``
    counterexamples, what is ``left``, or the ``trouble`` that kept it from asking. ``held`` keeps the walked launch for the
    next question."""
    try:
        if key not in held:
            held[key] = Questions(*launch(spec))
        asked: Questions = held[key]
        if question == "races" and asked.synchronises:
            return {"trouble": "programs order themselves by atomics"}
        found = asked.ask(question, seconds)
        return {"proved": found.proved, "shown": found.shown, "left": found.left}
    except (Beyond, Unsupported) as e:
        return {"trouble": str(e)}


def launch(spec: dict[str, Any]) -> tuple[SymbolicLaunch, dict[str, Any]]:
    """The launch, and its sizes by name. Raises Beyond and Unsupported."""
    known, base = sizes(spec)
    storages = tuple(_storage(s, known) for s in spec["storages"])
    args = tuple(_argument(a, known) for a in spec["args"])
    for a, given in zip(args, spec["args"], strict=True):
        if isinstance(a, Num) and given[2] in INTEGERS:
            base.append(index_forms.within(a, *INTEGERS[given[2]]))
    total = index.num(0)
    for s in storages:
        total = index.add(total, s.nbytes)
    if total.high > spec["memory"]:
        base.append(total.e <= spec["memory"])
    x, y, z = (value(g, known) for g in spec["grid"])
    ranges = {n: (v.low, v.high) for n, v in known.items()}
    program = ttir.read(spec["text"])
    held = tuple(b for b in base if b is not True)
    return SymbolicLaunch(program, args, (x, y, z), storages, held, ranges), {n: v.e for n, v in known.items()}


def sizes(spec: dict[str, Any]) -> tuple[dict[str, Num], list[Any]]:
    """The dims as numbers of the index domain, and what holds of them."""
    known: dict[str, Num] = {}
    base: list[Any] = []
    for n, (low, high, multiple, listed) in spec["dims"].items():
        v = known[n] = index_forms.symbol(n, min(listed) if listed else low, max(listed) if listed else high)
        if v.fixed:
            continue
        base += [v.e >= v.low, v.e <= v.high]
        if listed:
            base.append(z3.Or([v.e == s for s in listed]))
        if multiple > 1:
            base.append(v.e % multiple == 0)
    base += [index_forms.condition(c, known) for c in spec["constraints"]]
    for form, least, most in spec["picked"]:
        v = value(form, known)
        base.append(index_forms.within(v, v.low if least is None else least, v.high if most is None else most))
    return known, base


def value(form: str, known: dict[str, Num]) -> Num:
    found = index_forms.value(form, known)
    if found is None:
        raise Beyond(f"'{form}' is not followed")
    return found


def _argument(given: list[Any], known: dict[str, Num]) -> Any:
    if given[0] == "pointer":
        return Spot(given[1], value(given[2], known), given[3])
    return value(given[1], known) if given[0] == "int" else OPAQUE


def _storage(given: list[Any], known: dict[str, Num]) -> Storage:
    nbytes, names, promised, *rest = given
    return Storage(value(nbytes, known), tuple(names), _promised(promised, known), bool(rest and rest[0]))


def _promised(held: list[str] | None, known: dict[str, Num]) -> tuple[Num, Num] | None:
    """Both ends of a promise, where they are followed."""
    ends = [index_forms.value(e, known) for e in held or ()]
    return (ends[0], ends[1]) if len(ends) == 2 and ends[0] is not None and ends[1] is not None else None
