"""The strongest claim that each kind of operator reaches: what the gate `algebra` says of the corpus' right kernels.

    python benchmarks/claims/run.py [--only PART ...]     measure (a resumable run: rows not tried keep their last result)
    python benchmarks/claims/run.py --check [ROW ...]     measure again and fail where a row is weaker than the committed one

Writes `benchmarks/claims.json` and `docs/evidence/claims.md`.
"""

from __future__ import annotations

import argparse
import datetime
import json
import platform
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
CORPUS = ROOT / "corpus"
EVIDENCE = HERE.parent / "claims.json"
PAGE = ROOT / "docs" / "evidence" / "claims.md"
RANK = {"sampled": 0, "real": 1, "algebra": 2}
SEED = 7


def main() -> None:
    """Measure, or check against what is committed."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--only", nargs="*", default=[], help="rows whose name contains one of these")
    options.add_argument("--check", nargs="*", default=None, metavar="ROW")
    given = options.parse_args()
    if given.check is not None:
        raise SystemExit(check(given.check))
    held = json.loads(EVIDENCE.read_text())["rows"] if EVIDENCE.is_file() else {}
    for name in kinds():
        if not given.only or any(part in name for part in given.only):
            held[name] = row(name)
            print(line(name, held[name]), flush=True)
            write({n: held[n] for n in kinds() if n in held})


def kinds() -> list[str]:
    """Kinds of operator: problems of the corpus that have a right kernel in Triton or torch."""
    return [str(p.parent.relative_to(CORPUS)) for p in sorted(CORPUS.glob("*/*/problem.py")) if rights(p.parent)]


def rights(folder: Path) -> list[Path]:
    return sorted(folder.glob("right_*.py"))


def row(name: str) -> dict[str, Any]:
    """The strongest claim over a kind's right kernels, the kernel that reaches it, and what keeps it from more."""
    found = [claim(CORPUS / name / "problem.py", k) for k in rights(CORPUS / name)]
    best = max(found, key=lambda f: RANK[f["claim"]])
    return {**best, "kernels": len(found), "reach_it": sum(f["claim"] == best["claim"] for f in found)}


def claim(problem: Path, kernel: Path) -> dict[str, Any]:
    """What the gate says of one right kernel. A difference that it finds would be a false alarm, and ends the run."""
    from tilewright.kernel import read
    from tilewright.prove.examination import Examination
    from tilewright.prove.examine import open_task
    from tilewright.prove.gates import gate

    sheet, reference = open_task(str(problem))
    exam = Examination(sheet, read(str(kernel)), reference, seed=SEED)
    start = time.perf_counter()
    try:
        report = gate("algebra").run(exam)
    finally:
        exam.close()
        reference.close()
    if report.findings:
        raise SystemExit(f"{kernel}: false alarm: {report.findings[0].summary}")
    claims = {c.kind: c for c in report.claims if c.kind in RANK}
    kind = max(claims, key=lambda k: RANK[k], default="sampled")
    return {"claim": kind, "kernel": kernel.name, "domain": claims[kind].domain if kind in claims else "",
            "strength": claims[kind].strength if kind in claims else "", "reason": reason(report, kind, claims),
            "seconds": round(time.perf_counter() - start, 1)}  # fmt: skip


def reason(report: Any, kind: str, claims: dict[str, Any]) -> str:
    """Why not more. Nothing where the field decides all."""
    if kind == "algebra" and "real" not in claims:
        return ""
    if "real" in claims:
        said = claims["real"].strength
        return said[said.find("(") + 1 :].rstrip(")").removeprefix("the field does not decide: ")
    return str(report.reason or report.meaning)


def write(rows: dict[str, Any]) -> None:
    """Evidence and page."""
    import torch
    import triton

    evidence = {"machine": f"{platform.machine()}, no GPU", "python": platform.python_version(), "torch": torch.__version__,
                "triton": triton.__version__, "date": datetime.date.today().isoformat(), "rows": rows}  # fmt: skip
    EVIDENCE.write_text(json.dumps(evidence, indent=1) + "\n")
    PAGE.parent.mkdir(parents=True, exist_ok=True)
    PAGE.write_text(page(evidence))


def check(names: list[str]) -> str | int:
    """Measures rows (all, or those named) and says which became weaker; nothing where none did."""
    floor = json.loads(EVIDENCE.read_text())["rows"]
    unknown = [n for n in names if n not in floor]
    if unknown:
        return f"no such row: {', '.join(unknown)}; see {EVIDENCE.name}"
    now = {}
    for name in names or floor:
        now[name] = row(name) if name in kinds() else {"claim": "sampled", "reason": "its problem is gone"}
        print(line(name, now[name]), flush=True)
    return "\n".join(weaker(floor, now)) or 0


def weaker(floor: dict[str, Any], now: dict[str, Any]) -> list[str]:
    """A line for each row of ``now`` whose claim is below the committed one."""
    return [f"{n}: was {floor[n]['claim']}, is {r['claim']} ({r.get('reason', '')})"
            for n, r in now.items() if RANK[r["claim"]] < RANK[floor[n]["claim"]]]  # fmt: skip


def line(name: str, r: dict[str, Any]) -> str:
    return f"{name}: {r['claim']} {r.get('reason', '')}".rstrip()


def title(name: str) -> str:
    """What a kind computes, by its problem file's first words."""
    text = (CORPUS / name / "problem.py").read_text()
    first = text.split('"""')[1].strip().splitlines()[0] if text.startswith('"""') else ""
    return first.split(". ")[0].rstrip(".")


def page(e: dict[str, Any]) -> str:
    """The table."""
    rows = e["rows"]
    counts = Counter(r["claim"] for r in rows.values())
    lines = [HEAD.format(n=len(rows), algebra=counts["algebra"], real=counts["real"], sampled=counts["sampled"], date=e["date"],
                         torch=e["torch"], triton=e["triton"])]  # fmt: skip
    lines += ["| Kind of operator | Strongest claim | Why not more |", "|---|---|---|"]
    order = sorted(rows, key=lambda n: (-RANK[rows[n]["claim"]], n))
    lines += [f"| `{n}`: {title(n)} | **{rows[n]['claim']}** | {rows[n]['reason'].replace('|', '/')} |" for n in order]
    lines += ["", "## What stands behind each", "", "| Kind | Kernel | On | Strength |", "|---|---|---|---|"]
    lines += [
        f"| `{n}` | `{rows[n]['kernel']}` | {rows[n]['domain']} | {rows[n]['strength']} |"
        for n in order
        if rows[n]["strength"]
    ]
    return "\n".join(lines) + "\n"


HEAD = """# What can be claimed of which operator

Written by `benchmarks/claims/run.py` from `benchmarks/claims.json`; don't edit it. `python benchmarks/claims/run.py --check`
measures it again and fails where a row is weaker; the tests do so for a few rows.

For each of {n} kinds of operator, the strongest claim that a right kernel of the corpus reaches ({date}, torch {torch}, Triton
{triton}): {algebra} **algebra**, {real} **real**, {sampled} **sampled**.

* **algebra**: kernel and reference are the same formula at the sizes shown: they agree on every draw in a finite field, where
  different formulas practically never do. Says nothing of rounding.
* **real**: they agree in float64 arithmetic over hostile inputs, where the field doesn't reach.
* **sampled**: they agree, within the tolerance, on the inputs of the functional gates. That claim every accepted kernel has.
"""

if __name__ == "__main__":
    sys.exit(main())
