"""One element of the result in words, read off the compiled kernel at small sizes.

Terms of a large call are too many to collect, so a formula is read at two small sizes. Where both readings become one
text once their sizes are called by the names of the dims (``max_{j<69}`` and ``max_{j<76}``: ``max_{j<N}``), that text
is the formula; else the first reading stands, with its sizes beside it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from ..errors import TilewrightError
from ..ir.domains.symbolic_text import TOO_LARGE
from ..prove import sizes, witness
from ..prove.case import Recipe
from ..prove.child.algebra_session import AlgebraSession
from ..prove.examination import Examination
from ..prove.traced_calls import recipes, with_parameters

SECONDS = 20.0
TELLING = 8  # smaller sizes are like other small numbers of a formula
FURTHER = 7
_LETTERS = frozenset("jklmnpqrstuvw")  # running indices


@dataclass(frozen=True)
class Formula:
    """``text``, empty where none can be told, and ``read``: the sizes at which it was read off."""

    text: str = ""
    read: str = ""


def formula(exam: Examination) -> Formula:
    """One element of the first float result."""
    child = None
    try:
        first = next(iter(recipes(exam)))
        child = AlgebraSession(exam.kernel, limits=exam.limits, sandbox=exam.sandbox)
        told = _read(exam, child, first)
        dims = first.workload.dims
        second = _further(exam, first)
        if not told or not dims:
            return Formula(told, _sizes(dims) if told else "")
        general = named(told, dims)
        if second is not None and named(_read(exam, child, second), second.workload.dims) == general:
            return Formula(general, f"{_sizes(dims)} and at {_sizes(second.workload.dims)}")
        return Formula(told, _sizes(dims))
    except (TilewrightError, StopIteration):
        return Formula()
    finally:
        if child is not None:
            child.close()


def _read(exam: Examination, child: AlgebraSession, recipe: Recipe) -> str:
    case = with_parameters(exam, exam.make(recipe))
    outcome = exam.run(case, trace=True)
    found = [(n, t) for n, t in outcome.outputs.items() if t.is_floating_point() and t.numel()]
    if not found:
        return ""
    name, out = found[0]
    index = [min(1, n - 1) for n in out.shape]
    child.pair(outcome.trace or {}, outcome.trace or {}, witness.symbolic(case), SECONDS)
    text = child.words(witness.symbolic(case), name, index, own=True).text
    at = f"[{','.join(map(str, index))}]" if index else ""
    text = text.replace("state.", "")  # parameters by the names that their module has for them
    return f"{name}{at} = {text}" if text and TOO_LARGE not in text else ""


def _further(exam: Examination, first: Recipe) -> Recipe | None:
    """The same call at other sizes, each telling one moved."""
    dims = dict(first.workload.dims)
    for i, (name, size) in enumerate(first.workload.dims.items()):
        if size >= TELLING and name in exam.sheet.dims:
            near = sizes.near(exam.sheet.dims[name], size + FURTHER + 6 * i)
            dims = (sizes.put(exam.sheet, dims, name, near) if near else None) or dims
    if dims == first.workload.dims:
        return None
    return replace(first, workload=first.workload.model_copy(update={"dims": dims}))


def named(text: str, dims: Mapping[str, int]) -> str:
    """A formula with telling sizes, and what lies next to them, called by the names of the dims. A size that two dims
    have stays a number."""
    words: dict[int, list[str]] = {}
    for name, size in dims.items():
        if size >= TELLING and name not in _LETTERS:
            words.setdefault(size, []).append(name)
    for name, size in dims.items():
        if size >= TELLING and name not in _LETTERS:
            words.setdefault(size - 1, [f"({name}-1)"])
            words.setdefault(size + 1, [f"({name}+1)"])
    known = {size: names[0] for size, names in words.items() if len(names) == 1}
    return re.sub(r"(?<![\w.,\[])\d+(?![\w.,\]])", lambda m: known.get(int(m[0]), m[0]), text)


def _sizes(dims: Mapping[str, int]) -> str:
    return ", ".join(f"{n}={v}" for n, v in dims.items())
