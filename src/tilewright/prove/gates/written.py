"""Written: every output element is written, nothing unwritten or out of bounds is read or written.

Each case runs twice, with fresh memory (``torch.empty`` and its relatives) and the zones around the inputs full of
NaN bytes and full of finite ones. What differs between the runs came from there. Triton launches report every access
out of range by themselves; kernels in C get unreadable pages tight on both sides of each buffer, outputs included.

It can't see a read of unwritten memory that never reaches an output, nor memory that is got past torch
(``numpy.empty``, ``malloc``), nor, for torch kernels, accesses that torch itself makes. Sources: unwritten tails that
a recycled buffer hid (FBGEMM PR 5754), accumulation into uninitialised memory (HeCBench#289), writes past the last
column (kernels-community#1153); electric fences.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch

from .. import sizes
from ..case import Case, Recipe
from ..child.session import Outcome, same_bits
from ..child.watch import FINITE_BYTE, NAN_BYTE, fill
from ..compare import position
from ..gate import Check, Gate
from ..verdict import Role
from ._patience import patient

if TYPE_CHECKING:
    from ..examination import Examination

ODD = 7
BUDGET = 8192
AGAIN = 12  # times on a device, where the order of arrival differs once in a while


class Written(Gate):
    name = "written"
    proves = "every output element is written; nothing unwritten or out of bounds is touched"

    def role(self, exam: Examination) -> Role:
        return "core"

    def cases(self, exam: Examination) -> Iterable[Case]:
        first = exam.workload()
        planned = sizes.plan(exam.sheet, first.dims, hints=sizes.constants(exam.kernel.text), most=ODD, budget=BUDGET)
        recipes = []
        for i, dims in enumerate([first.dims, *(s.dims for s in planned)]):
            for dtype in exam.dtypes() if i == 1 else exam.dtypes()[:1]:
                w = first.model_copy(update={"dims": dims, "dtype": dtype})
                recipes.append(Recipe(w, seed=exam.seed_for("written", i, dtype)))
        return patient(exam, recipes, essential=5, share=0.1)

    def check(self, exam: Examination, case: Case) -> Check:
        truth = exam.truth(case)
        if truth.refused is not None:
            return Check(skipped=truth.refused.message)
        run = _fenced if exam.kernel.language == "native" else _plain
        nan = run(exam, case, NAN_BYTE)
        if (bad := _out_of_range(exam, case, nan)) is not None:
            return bad
        finite = run(exam, case, FINITE_BYTE)
        if (bad := _out_of_range(exam, case, finite)) is not None:
            return bad
        if nan.trouble is not None or finite.trouble is not None:
            return _troubled(exam, nan, finite)
        return _compare(exam, case, nan, finite)


def _plain(exam: Examination, case: Case, byte: int, **options: Any) -> Outcome:
    return exam.run(case, poison=byte, guard=byte, **options)


def _fenced(exam: Examination, case: Case, byte: int) -> Outcome:
    """A C kernel with its outputs among the guarded buffers; data begins at a fence in one run and ends at one in the
    other. Buffers that end at a fence are aligned to their elements only: a kernel that crashes for that, without
    fences too, is run at aligned addresses."""
    place = "start" if byte == NAN_BYTE else "end"
    full = _with_outputs(exam, case, byte)
    got = _plain(exam, full, byte, place=place, seal={"names": None})
    if place == "end" and _crashed(got) and _crashed(_plain(exam, full, byte, place=place)):
        return _plain(exam, full, byte, place="start", seal={"names": None})
    return got


def _with_outputs(exam: Examination, case: Case, byte: int) -> Case:
    model = exam.truth(case).baseline or exam.truth(case).oracle
    outs = {}
    for name, y in zip(exam.sheet.outputs or {}, model.values(), strict=False):
        outs[f"out.{name}"] = torch.empty(y.shape, dtype=y.dtype)
        fill(outs[f"out.{name}"], byte)
    return replace(case, inputs={**case.inputs, **outs})


def _crashed(outcome: Outcome) -> bool:
    return outcome.trouble is not None and outcome.trouble.kind == "crash"


def _out_of_range(exam: Examination, case: Case, outcome: Outcome) -> Check | None:
    """What the launches, the fences and the zones around the inputs tell."""
    for launch in outcome.launches:
        for fault in launch.get("faults", ()):
            summary = f"out of bounds in {launch['function']}: {fault['text']}"
            return Check(cls="wrong", summary=summary, where=fault["where"],
                         expected=f"elements 0 to {fault['size'] - 1}", got=f"element {fault['offset']}")  # fmt: skip
        for zone, count in launch.get("damage", ()):
            return _damaged(zone, count, None, f" by {launch['function']}")
    for zone, count in outcome.damage:
        native = exam.kernel.language == "native"
        buffers = _with_outputs(exam, case, NAN_BYTE).tensors if native else case.tensors
        return _damaged(zone, count, buffers.get(zone.partition(" ")[2]), "")
    if _crashed(outcome) and exam.kernel.language == "native":
        return _culprit(exam, _with_outputs(exam, case, NAN_BYTE))
    return None


def _damaged(zone: str, count: int, t: torch.Tensor | None, by: str) -> Check:
    side, _, name = zone.partition(" ")
    name = name.removeprefix("out.")
    where = f"past the end of '{name}'" if side == "after" else f"before the start of '{name}'"
    many = f"{count} bytes" if t is None else f"{-(-count // t.element_size())} elements"
    return Check(cls="wrong", summary=f"writes {many} {where}{by}", where=name,
                 expected="no byte changed outside the buffers", got=f"{count} bytes changed")  # fmt: skip


def _culprit(exam: Examination, case: Case) -> Check | None:
    """The buffer whose fence a C kernel touches, found by fencing one at a time; None if no single one does it."""
    if _crashed(_plain(exam, case, NAN_BYTE)):
        return None  # without fences too
    for name, t in case.tensors.items():
        places = [
            p for p in ("end", "start") if _crashed(_plain(exam, case, NAN_BYTE, place=p, seal={"names": [name]}))
        ]
        if not places:
            continue
        writes = _crashed(_plain(exam, case, NAN_BYTE, place=places[0], seal={"names": [name], "access": "read"}))
        side = "outside" if len(places) == 2 else "past the end of" if places == ["end"] else "before the start of"
        plain = name.removeprefix("out.")
        summary = f"{'writes' if writes else 'reads'} {side} '{plain}' {tuple(t.shape)}"
        return Check(cls="wrong", summary=summary, where=plain,
                     expected=f"accesses within {t.numel()} elements", got="a crash at the fence")  # fmt: skip
    return None


def _troubled(exam: Examination, nan: Outcome, finite: Outcome) -> Check:
    """At least one run gave no result."""
    bad = exam.trouble(nan) or exam.trouble(finite)
    assert bad is not None
    if (nan.trouble is None) != (finite.trouble is None) and bad.failed:
        kind = "NaN" if nan.trouble is not None else "finite"
        bad.summary = f"with {kind} bytes in memory that nobody wrote, {bad.summary}"
    return bad


def _compare(exam: Examination, case: Case, nan: Outcome, finite: Outcome) -> Check:
    for name, a in {**nan.outputs, **nan.grads}.items():
        b = finite.outputs.get(name, finite.grads.get(name))
        if b is None or same_bits(a, b):
            continue
        for _ in range(AGAIN if exam.place is not None else 1):
            again = _plain(exam, case, NAN_BYTE).outputs.get(name)
            if again is None or not same_bits(a, again):  # runs differ by themselves: gate determinism's matter
                return _both_right(exam, case, nan, finite)
        return _unwritten(exam, case, name, a, b)
    return Check()


def _both_right(exam: Examination, case: Case, nan: Outcome, finite: Outcome) -> Check:
    """Runs that differ anyway must each be right."""
    for kind, outcome in (("NaN", nan), ("finite", finite)):
        judged = exam.judge(case, outcome)
        if judged.failed:
            judged.summary = f"with {kind} bytes in memory that nobody wrote, {judged.summary}"
            return judged
    return Check()


def _unwritten(exam: Examination, case: Case, name: str, a: torch.Tensor, b: torch.Tensor) -> Check:
    """Words for what differs: elements never written, or values computed from what was never written."""
    differ = (_raw(a) != _raw(b)).any(-1)
    never = (_raw(a) == NAN_BYTE).all(-1) & (_raw(b) == FINITE_BYTE).all(-1)
    count, at = int(differ.sum()), list(position(int(differ.nonzero()[0]), a.shape))
    if bool(never.any()) and int(never.sum()) == count:
        summary, got = (
            f"{count} of {a.numel()} elements of '{name}' are never written, first {at}",
            "whatever was in memory",
        )
    else:
        source = _source(exam, case, name, a)
        summary = f"{count} of {a.numel()} elements of '{name}' depend on {source}, first {at}"
        got = f"{_at(a, differ)} with NaN there, {_at(b, differ)} with finite values"
    return Check(
        cls="wrong", summary=summary, where=f"{name}{at}", got=got, expected="the same result whatever is in memory"
    )


def _source(exam: Examination, case: Case, name: str, a: torch.Tensor) -> str:
    """Whether fresh memory or the zones around the inputs make the difference."""
    if exam.kernel.language == "native":
        return "memory that nobody wrote"
    mixed = exam.run(case, poison=NAN_BYTE, guard=FINITE_BYTE).outputs.get(name)
    return "memory that nobody wrote" if mixed is not None and same_bits(a, mixed) else "memory beyond an input"


def _raw(t: torch.Tensor) -> torch.Tensor:
    """Bytes of each element, one row an element."""
    return t.detach().contiguous().reshape(-1).view(torch.uint8).view(-1, t.element_size())


def _at(t: torch.Tensor, differ: torch.Tensor) -> str:
    return f"{t.detach().reshape(-1)[differ][0].item():.6g}"


GATE = Written()
