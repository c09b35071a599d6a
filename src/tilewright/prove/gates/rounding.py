"""Rounding: where a kernel rounds, in which dtype it adds, how exact its products are.

The evaluator keeps a ledger by source line: casts to fewer bits, dots with their precision (tf32 keeps 10 bits of each
factor, bfloat16 7) and accumulator, literals that stand for a constant. Sums are read off the program: dots,
reductions, scans, atomics, and what a loop carries. Where the contract states a dtype to accumulate in, a sum in a
narrower one breaks it, whether or not the result shows it; elsewhere the ledger is shown and decides nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from ...ir.values import WIDTH
from ..case import Case
from ..gate import Check, Gate, Tally
from ..verdict import Claim, Role
from ._launches import absent, computed, outcome_of, sampled, short

if TYPE_CHECKING:
    from ..examination import Examination

SEEN = "rounding"
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
        seen = exam.memory.get(SEEN, _nothing())
        return (
            (Claim(kind="rounding", domain="launches of sampled sizes", strength=summary(seen)),) if tally.cases else ()
        )


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
