"""Rounding: where a kernel rounds, in which dtype it adds, how exact its products are.

The evaluator keeps a ledger by source line: casts to fewer bits, dots with their precision (tf32 keeps 10 bits of each
factor, bfloat16 7) and accumulator, literals that stand for a constant. Sums are read off the program: dots,
reductions, scans, atomics, and what a loop carries. Where the contract states a dtype to accumulate in, a sum in a
narrower one breaks it, whether or not the result shows it; elsewhere the ledger is shown and decides nothing.

Beside it stands a derived bound: running error analysis (Higham, Accuracy and Stability of Numerical Algorithms, 2002)
over the trace of one call, as a share of the tolerance. Below one, no order of roundings leaves the tolerance at those
inputs; above, the worst case of all roundings might, which says nothing against the kernel, so it decides nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import torch

from ...errors import Unsupported
from ...ir.values import WIDTH
from .. import compare
from ..case import Case
from ..child.algebra_session import AlgebraSession
from ..gate import Check, Gate, Tally
from ..verdict import Claim, Role
from ._launches import absent, computed, outcome_of, sampled, short

if TYPE_CHECKING:
    from ..child.session import Outcome
    from ..examination import Examination, Truth

SEEN = "rounding"
BOUND_S = 20.0
SLACK = 1.5
NAMES = {
    "f16": "float16",
    "bf16": "bfloat16",
    "f32": "float32",
    "f64": "float64",
    "f8E4M3FN": "float8_e4m3fn",
    "f8E5M2": "float8_e5m2",
    "ieee": "float32",
}
UNIT = {"tf32": 2.0**-10, "f32": 2.0**-24, "bf16": 2.0**-8, "f16": 2.0**-11, "f64": 2.0**-53}


class Rounding(Gate):
    name = "rounding"
    proves = "sums are kept in the dtype that the contract states"
    shrinks = False

    def role(self, exam: Examination) -> Role:
        return "deciding" if exam.contract.accumulate else "advisory"

    def absent(self, exam: Examination) -> str:
        return absent(exam)

    def cases(self, exam: Examination) -> Iterable[Case]:
        exam.memory[SEEN] = _nothing()
        return sampled(exam)

    def check(self, exam: Examination, case: Case) -> Check:
        outcome = outcome_of(exam, case)
        if (bad := exam.trouble(outcome)) is not None:
            return Check(silent=bad.silent) if bad.silent else Check(skipped=bad.summary)
        launches = computed(outcome)
        if not launches:
            return Check(skipped="no launch")
        seen = exam.memory.setdefault(SEEN, _nothing())
        for launch in launches:
            add(seen, launch)
            for where, kind, elem in launch.get("sums", ()):
                if narrower(elem, exam.contract.accumulate):
                    return Check(
                        cls="policy",
                        summary=f"{launch['function']} adds in {NAMES.get(elem, elem)} ({KINDS[kind]})",
                        where=where,
                        expected=f"sums in {exam.contract.accumulate}, as the contract states",
                        got=f"sums in {NAMES.get(elem, elem)}",
                    )
        return Check()

    def meaning(self, exam: Examination, tally: Tally) -> str:
        return summary(exam.memory.get(SEEN, _nothing()))

    def claims(self, exam: Examination, tally: Tally) -> tuple[Claim, ...]:
        if not tally.cases:
            return ()
        seen = exam.memory.get(SEEN, _nothing())
        made = [Claim(kind="rounding", domain="launches of sampled sizes", strength=summary(seen))]
        case = next((c for c in sampled(exam) if not c.recipe.grad), None)
        found = None if case is None else derived(exam, case)
        if found is not None:
            made.append(Claim(kind="rounding", domain=f"one call at {case}, to first order", strength=found))
        return tuple(made)


def derived(exam: Examination, case: Case) -> str | None:
    """The derived error bound of one call beside its tolerance, in words; None where none can be derived."""
    child = None
    try:
        outcome = exam.run(case, trace=True)
        truth = exam.truth(case)
        if not outcome.ok or outcome.trace is None or truth.refused or truth.oracle is None:
            return None
        child = AlgebraSession(exam.kernel, limits=exam.limits, sandbox=exam.sandbox)
        child.pair(outcome.trace, outcome.trace, case.tensors, BOUND_S)
        values, errors = child.bound(case.tensors)
    except Unsupported:
        return None
    finally:
        if child is not None:
            child.close()
    shares = [s for n, b in errors.items() if (s := _share(exam, truth, outcome, n, values[n], b)) is not None]
    if not shares or any(math.isnan(s) for s in shares):
        return None
    return _said(max(shares))


def _share(exam: Examination, truth: Truth, outcome: Outcome, name: str, value: torch.Tensor,
           bound: torch.Tensor) -> float | None:  # fmt: skip
    """The largest bound over its budget; NaN where the call itself is further off than the bound (a rounding that it
    does not know), None where there is nothing to compare."""
    oracle, got = truth.oracle.get(name), outcome.outputs.get(name)
    if oracle is None or got is None or not got.is_floating_point() or oracle.shape != bound.shape or not got.numel():
        return None
    model = (truth.baseline or {}).get(name, oracle).double()
    finite = (
        torch.isfinite(oracle) & torch.isfinite(model) & torch.isfinite(bound) & torch.isfinite(value) & got.isfinite()
    )
    if not bool(finite.any()):
        return None
    total = bound + compare.ulp(value, got.dtype) / 2
    if bool(((got.double() - value).abs() > SLACK * total)[finite].any()):
        return math.nan
    budget, _ = compare.budgets(oracle.double(), model, finite, (truth.sensitivity or {}).get(name), got.dtype,
                                exam.contract.tolerance)  # fmt: skip
    return float((total / budget.clamp_min(1e-300))[finite].max())


def _said(share: float) -> str:
    if share <= 1:
        return f"no order of roundings leaves the tolerance: derived error bound at most {share:.2g} of it"
    return f"derived error bound up to {share:.2g} times the tolerance (the worst case of all roundings)"


KINDS = {
    "dot": "a dot's accumulator",
    "reduce": "a reduction",
    "scan": "a scan",
    "atomic": "atomic additions",
    "loop": "a sum that a loop carries, or what is added to it",
}


def _nothing() -> dict[str, Any]:
    return {"sums": set(), "products": set(), "casts": set(), "constants": {}}


def add(seen: dict[str, Any], launch: dict[str, Any]) -> None:
    """Adds a launch's ledger to the totals, by source line."""
    seen["sums"] |= {(short(w), kind, elem) for w, kind, elem in launch.get("sums", ())}
    for where, a, b, _, precision, *_ in launch["ledger"]["dots"]:
        seen["products"].add((short(where), precision if a == b == "f32" else a if a == b else f"{a} x {b}"))
    seen["casts"] |= {(short(w), a, b) for w, a, b, _ in launch["ledger"]["casts"]}
    seen["constants"].update({(short(w), name): e for w, name, e in launch["ledger"]["constants"]})


def narrower(elem: str, wanted: str | None) -> bool:
    """Whether a float type has fewer bits than the contract's accumulation dtype."""
    widths = {name: WIDTH[e] for e, name in NAMES.items() if e in WIDTH}
    return wanted in widths and elem in WIDTH and WIDTH[elem] < widths[wanted]


def summary(seen: dict[str, Any]) -> str:
    """The ledger in one line."""
    parts = []
    kept = sorted({NAMES.get(e, e) for _, _, e in seen["sums"]})
    if kept:
        parts.append(f"sums in {', '.join(kept)}")
    for precision in sorted({p for _, p in seen["products"]}):
        lines = sorted(w for w, p in seen["products"] if p == precision)
        unit = f", relative error up to {2 * UNIT['tf32']:.1g} a product" if precision == "tf32" else ""
        parts.append(f"{NAMES.get(precision, precision)} products at {_lines(lines)}{unit}")
    for a, b in sorted({(a, b) for _, a, b in seen["casts"]}):
        lines = sorted(w for w, x, y in seen["casts"] if (x, y) == (a, b))
        parts.append(f"{NAMES.get(a, a)} rounded to {NAMES.get(b, b)} at {_lines(lines)}")
    return "; ".join(parts) or "no sums, no casts to fewer bits"


def _lines(places: list[str]) -> str:
    """``file:3, 7, 9``."""
    by_file: dict[str, list[str]] = {}
    for p in places:
        name, _, line = p.rpartition(":")
        by_file.setdefault(name, []).append(line)
    return ", ".join(
        f"{name}:{', '.join(sorted(set(lines), key=lambda x: (len(x), x)))}" for name, lines in by_file.items()
    )


GATE = Rounding()
