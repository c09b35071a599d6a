"""Explain a kernel: facts about each launch, by source line, without a GPU and without timing anything.

One call at one size is evaluated in the sealed children; what the launches asked for comes from the evaluator, what the
machine code needs from the compiler. A roofline (Williams, Waterman, Patterson, 2009) over ceilings that were measured
on the card says what the least time is. Nothing here is a measurement of this kernel.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..errors import KernelError, UserError
from ..kernel import read
from ..kernel.languages._facade import H200
from ..prove import sizes
from ..prove.case import Case, Recipe
from ..prove.child.session import Outcome
from ..prove.examination import Examination
from ..prove.examine import open_task
from ..prove.gates import rounding
from ..prove.gates._launches import computed, short
from ..task.task import itemsize
from ..task.tensors import TensorSpec, evaluate
from . import obstacles, torch_work
from .facts import Access, Explained, Launch, TorchOp
from .formula import formula
from .occupancy import occupancy, resident

LANGUAGES = {"native": "a kernel in C", "cuda": "a CUDA kernel"}
BIGGEST = 256 << 20
SIZES = {"i1": 1, "i8": 1, "i16": 2, "i32": 4, "i64": 8, "f16": 2, "bf16": 2, "f32": 4, "f64": 8}

__all__ = ["Explained", "ceilings", "explain"]


def ceilings(card: str = "h200") -> dict[str, Any]:
    """What the card was measured to do (``ceilings.toml``)."""
    return dict(tomllib.loads((Path(__file__).parent / "ceilings.toml").read_text())[card])


def explain(
    problem: str,
    kernel: str,
    *,
    dims: Mapping[str, int] | None = None,
    dtype: str | None = None,
    overrides: str | None = None,
    reference: str | None = None,
    sandbox: str = "best",
) -> Explained:
    """Facts about ``kernel`` at ``dims`` (those of the task's first workload for what is not given).

    Raises UserError for unknown or unlawful dims, KernelError where the kernel fails or is neither Triton nor torch."""
    source = read(kernel)
    if source.language not in ("triton", "torch"):
        raise KernelError(
            f"'{kernel}' is {LANGUAGES.get(source.language, source.language)}: explain reads launches of Triton kernels "
            "and torch operations",
            remedy=f"tilewright bench {problem} {kernel}, which times it beside its floor",
        )
    sheet, session = open_task(problem, overrides=overrides, reference=reference, sandbox=sandbox)
    exam = Examination(sheet, source, session, seed=0, sandbox=sandbox)
    try:
        case = exam.make(_recipe(exam, dict(dims or {}), dtype))
        outcome = exam.run(case, binary=source.language == "triton", trace=True)
        if outcome.trouble is not None:
            raise KernelError(
                f"the kernel gives no result at {case}: {outcome.trouble}", where=outcome.trouble.where or None
            )
        launches = computed(outcome)
        if not launches and source.language == "triton":
            raise KernelError("the kernel launches nothing", remedy="check that the entry calls a @triton.jit function")
        return _explained(exam, case, outcome, launches)
    finally:
        exam.close()
        exam.reference.close()


def _recipe(exam: Examination, wanted: dict[str, int], dtype: str | None) -> Recipe:
    first = exam.workload()
    known = {**exam.sheet.given, **first.dims}
    for name in wanted:
        if name not in known:
            raise UserError(f"the task has no dim '{name}'", remedy=f"its dims are {', '.join(known) or 'fixed'}")
    dims = {**first.dims, **wanted}
    if wanted and not sizes.legal(exam.sheet, dims):
        ranges = ", ".join(f"{n} {d.low}..{d.high}" for n, d in exam.sheet.dims.items())
        raise UserError(f"the contract has no size {dims}", remedy=f"it promises {ranges}")
    if dtype is not None and dtype not in exam.dtypes():
        raise UserError(f"the contract promises no {dtype}", remedy=f"choose from {', '.join(exam.dtypes())}")
    if sizes.nbytes(exam.sheet, dims, dtype) > BIGGEST:
        raise UserError(
            f"{dims} is more than {BIGGEST >> 20} MiB of inputs and outputs, too much to evaluate here",
            remedy="choose smaller sizes with --dims; the facts of a launch change little from there",
        )
    w = first.model_copy(update={"dims": dims, "dtype": dtype or first.dtype})
    return Recipe(w, seed=exam.seed_for("explain"))


def _explained(exam: Examination, case: Case, outcome: Outcome, notes: list[dict[str, Any]]) -> Explained:
    top = ceilings()
    launches = tuple(_launch(n) for n in notes)
    compulsory, by = _compulsory(exam, case, outcome)
    launches = tuple(x.model_copy(update={"obstacles": obstacles.of_launch(x, H200.multiprocessors)}) for x in launches)
    work = torch_work.operations(outcome.trace or {})
    left = torch_work.intermediates(outcome.trace or {})
    flops, flops_by = _flops(exam, case, launches, work)
    slow, fast = compulsory / top["copy"], flops / top["matmul_bf16"]
    told = formula(exam)
    ops = {f"{x.name} at {x.where}": x.times for x in work}
    return Explained(
        kernel=exam.kernel.path,
        task=exam.sheet.name,
        dims=case.dims,
        dtype=case.recipe.workload.dtype or exam.dtypes()[0],
        card=top["name"],
        measured=str(top["measured"]),
        compulsory=compulsory,
        compulsory_by=by,
        flops=flops,
        flops_by=flops_by,
        read=sum(x.read for x in launches) + sum(x.read for x in work),
        written=sum(x.written for x in launches) + sum(x.written for x in work),
        intensity=flops / compulsory if compulsory else 0.0,
        ridge=top["matmul_bf16"] / top["copy"],
        bound="memory" if slow >= fast else "tensor cores",
        floor=max(slow, fast),
        torch_ops=ops,
        operations=work,
        intermediates=left,
        formula=told.text,
        formula_read=told.read,
        launches=launches,
        obstacles=obstacles.of_all(launches, compulsory, work, left),
        notes=_notes(exam, outcome, launches),
    )


def _compulsory(exam: Examination, case: Case, outcome: Outcome) -> tuple[int, str]:
    """Bytes that must be moved, and by whose word."""
    names = {**case.dims, "itemsize": itemsize(case.recipe.workload.dtype or exam.dtypes()[0])}
    if exam.sheet.work is not None:
        return evaluate(exam.sheet.work.bytes, names), "stated by the task"
    given = sum(t.numel() * t.element_size() for t in (*case.tensors.values(), *case.state.values()))
    return given + sum(t.numel() * t.element_size() for t in outcome.outputs.values()), "inputs once, outputs once"


def _flops(exam: Examination, case: Case, launches: tuple[Launch, ...],
           work: tuple[TorchOp, ...]) -> tuple[int, str]:  # fmt: skip
    if exam.sheet.work is not None and exam.sheet.work.flops:
        return evaluate(exam.sheet.work.flops, {**case.dims, "itemsize": 1}), "stated by the task"
    if not work:
        return sum(x.dot_flops for x in launches), "the launches' dots alone"
    said = "the launches' dots and torch's operations" if launches else "torch's operations"
    return sum(x.dot_flops for x in launches) + sum(x.flops for x in work), said


def _launch(n: dict[str, Any]) -> Launch:
    made = n.get("binary", {})
    accesses = tuple(_access(n, a, made) for a in n["accesses"])
    flops = sum(2 * k * count for *_, k, count in n["ledger"]["dots"])
    seen: dict[str, Any] = {"sums": set(), "products": set(), "casts": set(), "constants": {}}
    rounding.add(seen, n)
    programs = math.prod(n["grid"])
    facts: dict[str, Any] = {"note": made.get("refused", "")}
    if "registers" in made:
        share, limit = occupancy(made["registers"], made["warps"], made["shared"])
        at_once = resident(made["registers"], made["warps"], made["shared"])[0] * H200.multiprocessors
        facts = {k: made[k] for k in ("registers", "spills", "shared", "warps", "stages")}
        facts |= {"occupancy": share, "limited_by": limit, "waves": programs / max(1, at_once)}
    return Launch(
        function=n["function"],
        where=accesses[0].where if accesses else "",
        grid=tuple(n["grid"]),
        programs=programs,
        read=sum(a.bytes for a in accesses if a.kind != "store"),
        written=sum(a.bytes for a in accesses if a.kind != "load"),
        dot_flops=flops,
        tensor_cores=tuple(sorted(made.get("tensor", {}))),
        accesses=accesses,
        rounding=rounding.summary(seen),
        **facts,
    )


def _access(n: dict[str, Any], a: dict[str, Any], made: dict[str, Any]) -> Access:
    where = short(a["where"])
    size = SIZES.get(a["elem"], 1 if a["elem"].startswith("f8") else 8)
    kinds = {"load": ("load", "copy"), "store": ("store",), "atomic": ("atomic",)}[a["kind"]]
    widths = [w for at, kind, w, _ in made.get("instructions", ()) if at == where and kind in kinds and w]
    sectors = next((s for s in made.get("sectors", ()) if short(s[0]) == where and s[1] == a["kind"]), None)
    reach = a["high"] - a["low"] + 1 if a["high"] is not None and a["low"] is not None else 0
    return Access(
        where=where,
        kind=a["kind"],
        argument=a["argument"],
        dtype=rounding.NAMES.get(a["elem"], a["elem"]),
        bytes=a["active"] * size,
        masked=1 - a["active"] / a["elements"] if a["elements"] else 0.0,
        width=max(widths, default=0),
        used=min(1.0, sectors[3] / (32 * sectors[2])) if sectors else None,
        step=sectors[4] if sectors else 0,
        repeats=a["active"] / reach if reach else 0.0,
    )


def _notes(exam: Examination, outcome: Outcome, launches: tuple[Launch, ...]) -> tuple[str, ...]:
    notes = []
    if outcome.tuned:
        notes.append("the kernel is tuned: the first of its configurations is explained")
    for x in launches:
        if x.note:
            notes.append(f"{x.function} could not be compiled for the card: {x.note.splitlines()[0]}")
    if any(isinstance(s, TensorSpec) and s.values.kind in ("integers", "custom") for s in exam.sheet.inputs.values()):
        notes.append("what data decides (indices, lengths) is as drawn for this call")
    return tuple(notes)
