"""The truth about a case: the reference's result in float64 (the oracle), in the kernel's own dtypes (the trusted
baseline), and how far the oracle moves when its inputs move by one rounding (the conditioning; ``compare.py`` says what
becomes of the three).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import torch

from ..task import values
from ..task.tensors import TensorSpec
from . import compare, special
from .case import Case
from .child.session import Outcome
from .judging import Truth

if TYPE_CHECKING:
    from .examination import Examination

BIASED = ("constant_rows",)  # families whose values repeat along a row only
COMMON, FEW, LOOKED = 1 / 8, 8, 4096  # a value with such a share repeats; among so many elements; of the first so many
MORE = 6  # draws of the conditioning before a kernel is called inaccurate
LONG = 2048  # from here on a plain loop's float32 sum leaves the baseline's error behind


def establish(exam: Examination, case: Case) -> Truth:
    """Run the reference in float64, in the kernel's own dtypes, and with its inputs moved."""
    exact = _exact(case)
    plain = {**exact, "inputs": case.inputs, "state": case.state, "observe": True, "dtype": None,
             "cotangents": None if exact["cotangents"] is None else case.cotangents}  # fmt: skip
    oracle, base, moved = exam.reference.run_many([exact, plain, _moved(exam, case, exact, 0)])
    if oracle.trouble is not None:
        if oracle.trouble.kind in ("crash", "timeout", "exit"):
            exam.reopen_reference()
        return Truth({}, None, {}, {}, {}, None, {}, {}, {}, refused=base.trouble or oracle.trouble)
    note = "" if base.ok else f"no baseline in {case.recipe.workload.dtype}: {base.trouble}"
    sensitivity, slope, after = _sensitivity(exam, case, oracle, moved, exact, scans=_scans(base))
    return Truth(
        oracle=oracle.outputs,
        baseline=base.outputs if base.ok else None,
        sensitivity=sensitivity,
        tree=base.tree if base.ok else oracle.tree,
        oracle_grads=oracle.grads,
        baseline_grads=base.grads if base.ok else None,
        inputs_after=oracle.inputs_after,
        baseline_after=base.inputs_after if base.ok else {},
        sensitivity_grads=slope,
        sensitivity_after=after,
        note=note,
        alias=base.alias if base.ok else oracle.alias,
        seen=base.seen if base.ok else oracle.seen,
    )


def refine(exam: Examination, case: Case, held: Truth) -> None:
    """More draws of the conditioning, for a case that fails by its budget: one draw of few numbers is small by luck at
    times, and then an honest error stands beside nothing."""
    runs = exam.reference.run_many([_moved(exam, case, _exact(case), draw) for draw in range(10, 10 + MORE)])
    for run in runs:
        _widest(held.sensitivity, run.outputs, held.oracle)
        _widest(held.sensitivity_grads, run.grads, held.oracle_grads)
        _widest(held.sensitivity_after, run.inputs_after, held.inputs_after)
    held.refined = True


def _exact(case: Case) -> dict[str, Any]:
    """The oracle's run: all floats in float64."""
    wide = {n: widen(v) for n, v in case.inputs.items()}
    state = {n: widen(v) for n, v in case.state.items()}
    cotangents = {n: widen(v) for n, v in case.cotangents.items()} if case.recipe.grad else None
    options: dict[str, Any] = {"workload": case.recipe.workload, "seed": case.recipe.seed % (1 << 31)}
    options |= {"requires_grad": case.recipe.wanted} if case.recipe.grad else {}
    return {"inputs": wide, "state": state, "dtype": "float64", "cotangents": cotangents, **options}


def _widest(into: dict[str, torch.Tensor], now: dict[str, torch.Tensor], before: dict[str, torch.Tensor]) -> None:
    """The larger of what is known and of how far ``now`` is from ``before``, element by element."""
    for n, o in before.items():
        if n in now and o.is_floating_point() and now[n].shape == o.shape:
            d = (now[n] - o).abs()
            into[n] = torch.fmax(into[n], d) if n in into else d


def _sensitivity(
    exam: Examination, case: Case, oracle: Outcome, moved: Outcome, exact: dict[str, Any], *, scans: bool
) -> tuple[dict[str, torch.Tensor], dict[str, torch.Tensor], dict[str, torch.Tensor]]:
    """How far outputs, gradients and what the reference leaves in its inputs move under one rounding of the inputs; the
    largest of several draws where the outputs are few, since one draw of one number is small by luck at times."""
    floats = [o for o in (*oracle.outputs.values(), *oracle.grads.values()) if o.is_floating_point() and o.numel()]
    runs = [moved]
    if min((o.numel() for o in floats), default=compare.CROWD) < compare.CROWD:
        runs += exam.reference.run_many([_moved(exam, case, exact, draw) for draw in (1, 2, 3)])
    if case.recipe.family in BIASED or repeats(
        case.tensors
    ):  # half a rounding of the sum a term, as for running sums that grow evenly
        runs += exam.reference.run_many([{**exact, "stray": _unit(exam, case) / (2 * compare.K)}])
    if scans:  # running sums are rounded at every step, in whatever order a kernel adds
        runs += exam.reference.run_many([_moved(exam, case, exact, draw, scans=True) for draw in (4, 5)])
    sensitivity: dict[str, torch.Tensor] = {}
    slope: dict[str, torch.Tensor] = {}
    left: dict[str, torch.Tensor] = {}
    for run in runs:
        _widest(sensitivity, run.outputs, oracle.outputs)
        _widest(slope, run.grads, oracle.grads)
        _widest(left, run.inputs_after, oracle.inputs_after)
    return sensitivity, slope, left


def repeats(tensors: Mapping[str, torch.Tensor]) -> bool:
    """Whether one value comes again and again in the largest float tensor: terms of its sums are then rounded alike."""
    floats = [t for t in tensors.values() if t.is_floating_point() and t.numel() >= FEW]
    if not floats:
        return False
    looked = max(floats, key=lambda t: t.numel()).detach().reshape(-1)[:LOOKED].double()
    return bool(looked.unique(return_counts=True)[1].max() >= COMMON * looked.numel())


def _moved(exam: Examination, case: Case, exact: dict[str, Any], draw: int, *, scans: bool = False) -> dict[str, Any]:
    """The oracle's run with inputs, parameters and incoming gradients moved by one rounding; ``scans``: by one rounding of
    the running sum along their longest axis."""
    moved = {
        n: nudge(
            v,
            case.inputs[n],
            exam.seed_for("nudge", n, draw),
            _longest(v) if scans else _chain(exam, case, n),
            _unit(exam, case),
        )
        for n, v in exact["inputs"].items()
    }
    upstream = exact["cotangents"] and {n: nudge(v, case.cotangents[n], exam.seed_for("nudge up", n, draw))
                                        for n, v in exact["cotangents"].items()}  # fmt: skip
    state = {n: nudge(v, case.state[n], exam.seed_for("nudge state", n, draw)) for n, v in exact["state"].items()}
    return {**exact, "inputs": moved, "state": state, "cotangents": upstream}


def _unit(exam: Examination, case: Case) -> float:
    """One rounding of the precision in which plain numbers reach a kernel of this case."""
    return compare.unit(getattr(torch, case.recipe.workload.dtype or "float32"))


def _chain(exam: Examination, case: Case, name: str) -> int | None:
    """The axis along which a long sum runs: of the dim that the recipe names (``chain``), else of a long dim that no
    output has."""
    dim, spec = case.recipe.options().get("chain"), exam.sheet.inputs.get(name)
    if dim is None and exam.sheet.outputs:
        kept = {d for s in exam.sheet.outputs.values() for d in special.dims_of(s)}
        dim = next((d for d, n in case.dims.items() if n >= LONG and d not in kept), None)
    return special.axis_of(spec, str(dim)) if dim and isinstance(spec, TensorSpec) and spec.shape else None


def _scans(base: Outcome) -> bool:
    """Whether the reference ran a prefix sum or product."""
    return any("cumsum" in op or "cumprod" in op for op in base.seen.get("ops", ()))


def _longest(v: Any) -> int | None:
    return max(range(v.dim()), key=lambda i: v.shape[i]) if isinstance(v, torch.Tensor) and v.dim() else None


def widen(v: Any) -> Any:
    if isinstance(v, torch.Tensor) and v.is_floating_point():
        return v.double()
    return v.to(torch.complex128) if isinstance(v, torch.Tensor) and v.is_complex() else v


def nudge(v: Any, original: Any, seed: int, chain: int | None = None, unit: float = compare.ACCUMULATE) -> Any:
    """A float input moved by one rounding of the accumulation precision, each element up or down at random; a plain float
    as well, since kernels get those rounded. ``chain``: an axis along which elements are added one after another: there
    each addition rounds the running sum."""
    if isinstance(v, float):
        return v * (1 + (unit if seed % 2 else -unit))
    if not isinstance(v, torch.Tensor) or not v.is_floating_point():
        return v
    signs = torch.randint(0, 2, v.shape, generator=values.generator(seed, v.device), device=v.device) * 2 - 1
    size = v if chain is None or v.dim() == 0 else torch.fmax(v.abs(), v.cumsum(chain).abs())
    moved = v + size * signs * compare.unit(original.dtype)
    return torch.where(torch.isfinite(moved), moved, v)
