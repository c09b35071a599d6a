"""Try `tilewright check` on bugs of public kernels: the wrong commit and the fixed one, the field's usual check beside it.

    python benchmarks/real_bugs/run.py CHECKOUTS [--only R05 R08]

CHECKOUTS is a folder with one checkout a commit, named NAME@COMMIT as `entries.toml` lists them:

    git clone https://github.com/linkedin/Liger-Kernel CHECKOUTS/Liger-Kernel@21c8215b…
    git -C CHECKOUTS/Liger-Kernel@21c8215b… checkout 21c8215b…

None of that code is part of this repository. The kernel under test is the function of the checkout, its file unmodified:
`R05/adapter.py` only calls its launcher, `R05/problem.py` says in plain torch what it must compute. Results go to
`benchmarks/real_bugs.json` and, as a table, to `docs/evidence/real-bugs.md`; entries not tried keep their last result.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import sys
import tempfile
import time
import tomllib
from pathlib import Path
from typing import Any

from tilewright.api import examine_and_record
from tilewright.audit import Pair
from tilewright.corpus.usual import usual_check
from tilewright.errors import TilewrightError
from tilewright.prove.finding import Finding
from tilewright.prove.verdict import Verdict

HERE = Path(__file__).resolve().parent
EVIDENCE = HERE.parent / "real_bugs.json"
TABLE = HERE.parent.parent / "docs" / "evidence" / "real-bugs.md"


def main() -> None:
    """Try the entries asked for and write the evidence after each."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("checkouts", type=Path)
    options.add_argument("--only", nargs="*", default=[])
    options.add_argument("--seed", type=int, default=20240601, help="seed of the draws, so that a run can be repeated")
    given = options.parse_args()
    entries = tomllib.loads((HERE / "entries.toml").read_text())
    evidence = json.loads(EVIDENCE.read_text()) if EVIDENCE.is_file() else {"entries": {}}
    for name, entry in entries.items():
        if given.only and name not in given.only:
            continue
        print(name, entry["operator"], flush=True)
        evidence["entries"][name] = {**entry, "results": tried(name, entry, given.checkouts.resolve(), given.seed)}
        evidence.update(
            machine=f"{platform.machine()}, {os.cpu_count()} cores, no GPU", python=platform.python_version()
        )
        evidence["entries"] = {n: evidence["entries"][n] for n in entries if n in evidence["entries"]}
        EVIDENCE.write_text(json.dumps(evidence, indent=1) + "\n")
        TABLE.parent.mkdir(parents=True, exist_ok=True)
        TABLE.write_text(table(evidence["entries"]))


def tried(name: str, entry: dict[str, Any], checkouts: Path, seed: int) -> dict[str, Any]:
    """Both commits (or the one that an entry names) through `check` and the usual check."""
    results = {}
    for side in ("wrong", "fixed"):
        if side not in entry:
            continue
        root = checkouts / f"{entry['repository'].split('/')[1]}@{entry[side]}"
        if not (root / entry["file"]).is_file():
            url = f"https://github.com/{entry['repository']}"
            sys.exit(f"error: {root / entry['file']} does not exist\n"
                     f"Try: git clone {url} {root} && git -C {root} checkout {entry[side]}")  # fmt: skip
        with tempfile.TemporaryDirectory(prefix="real-bugs-") as folder:
            results[side] = without(one(*prepare(name, entry, root, Path(folder)), seed), f"{root}/", f"{folder}/")
        print(f"  {side:6} {told(results[side])}", flush=True)
    return results


def without(result: dict[str, Any], *folders: str) -> dict[str, Any]:
    """The same result without the folders of this machine in its texts."""
    text = json.dumps(result)
    for folder in folders:
        text = text.replace(folder, "")
    return dict(json.loads(text))


def prepare(name: str, entry: dict[str, Any], root: Path, folder: Path) -> tuple[str, str]:
    """Problem and kernel: the adapter beside what it imports, or the third-party file itself."""
    for file in (*(HERE / name.partition("-")[0]).glob("*.py"), *(HERE / name).glob("*.py"), HERE / "third_party.py"):
        shutil.copy(file, folder)
    (folder / "checkout.py").write_text(f"ROOT = {str(root)!r}\n")
    kernel = f"{root / entry['file']}::{entry['entry']}" if "entry" in entry else str(folder / "adapter.py")
    return str(folder / "problem.py"), kernel


def one(problem: str, kernel: str, seed: int) -> dict[str, Any]:
    """One kernel through both."""
    ok, seconds, why = usual_check(Pair("", Path(problem), Path(kernel)))
    usual = {"passes": ok, "seconds": round(seconds, 1), "why": why.splitlines()[0] if why else ""}
    started = time.monotonic()
    try:
        verdict = examine_and_record(problem, kernel, record=False, seed=seed, timeout=120.0).verdict
    except TilewrightError as e:
        return {"verdict": "error", "reason": str(e), "seconds": round(time.monotonic() - started, 1), "usual": usual}
    return {**summary(verdict), "usual": usual}


def summary(v: Verdict) -> dict[str, Any]:
    """What the evidence keeps of a verdict."""
    out: dict[str, Any] = {"verdict": v.verdict, "reason": v.reason, "seconds": round(v.seconds, 1),
                           "versions": v.versions, "kernel_sha256": v.kernel_sha256, "task_sha256": v.task_sha256,
                           "gates": {g.name: g.status for g in v.gates},
                           "unsettled": {g.name: g.reason for g in v.gates if g.status == "inconclusive"}}  # fmt: skip
    decides = {g.name for g in v.gates if g.role != "advisory"} if v.verdict == "reject" else {g.name for g in v.gates}
    found = next(((g, f) for g in v.gates if g.status == "fail" and g.name in decides for f in g.findings), None)
    if found is not None:
        gate, f = found
        out |= {"gate": gate.name, "role": gate.role, "class": f.cls, "summary": f.summary, "where": f.where,
                "expected": f.expected, "got": f.got, "case": case(f)}  # fmt: skip
    return out


def case(f: Finding) -> dict[str, Any]:
    """The smallest failing case."""
    scalars = {n: v for n, v in f.case.inputs.items() if not hasattr(v, "strides")}
    return {"dims": f.case.dims, "dtype": f.case.dtype, "mode": f.case.mode, "note": f.case.note, "scalars": scalars}


def told(r: dict[str, Any]) -> str:
    """A result in one line."""
    usual = "passes" if r["usual"]["passes"] else f"fails ({r['usual']['why'][:60]})"
    return f"{r['verdict']} {r.get('gate', '')} {r['seconds']} s: {r.get('summary', r['reason'])} | usual check {usual}"


def table(entries: dict[str, Any]) -> str:
    """The evidence as Markdown."""
    lines = [INTRODUCTION]
    bugs = {n: e for n, e in entries.items() if "wrong" in e}
    lines.append(
        "| | Kernel | Wrong commit | Gate | Smallest case | s | Usual check | Fixed commit | s | Usual check |"
    )
    lines.append("|---|---|---|---|---|---:|---|---|---:|---|")
    lines += [bug_row(n, e) for n, e in bugs.items()]
    lines.append(closing(bugs))
    full = {n: e for n, e in entries.items() if "wrong" not in e and "entry" not in e}
    if full:
        lines += [
            FULL,
            "| | Kernel | Verdict | Gate | Smallest case | s | Usual check |",
            "|---|---|---|---|---|---:|---|",
        ]
        lines += [full_row(n, e) for n, e in full.items()]
    plain = {n: e for n, e in entries.items() if "entry" in e}
    if plain:
        lines += [PLAIN, "| File | Function | Commit | Verdict | Why | s |", "|---|---|---|---|---|---:|"]
        lines += [plain_row(e) for e in plain.values()]
    lines += [WORDS, *(f"* **{n}** {e['operator']}, {e['repository']}: {e['bug']}. {words(e)}"
                       for n, e in {**bugs, **full}.items())]  # fmt: skip
    return "\n".join(lines) + "\n"


INTRODUCTION = """# Bugs of public kernels

Written by `benchmarks/real_bugs/run.py` from `benchmarks/real_bugs.json`; don't edit it. Each line is a bug that a public
repository had and fixed. The kernel of the commit before the fix and of the fix, files unmodified, each went through
`tilewright check` on a machine without a GPU, and through the field's usual check: three random inputs of the first
workload's shape, `allclose` at 1e-2 (with gradients where the task promises them, of the sum of the output).
`benchmarks/real_bugs/entries.toml` names the files and commits, `benchmarks/real_bugs/R*/` holds the tasks.
"""
FULL = """
## Fixed commits under a wider contract

The tasks above promise what the bug is about. Some of the fixed kernels still fail where a task promises more.
"""
PLAIN = """
## Files as they are

Third-party files given to `tilewright check PROBLEM FILE::FUNCTION` with nothing in between.
"""
WORDS = """
## What was found
"""


def bug_row(name: str, e: dict[str, Any]) -> str:
    wrong, fixed = e["results"]["wrong"], e["results"]["fixed"]
    gate = wrong.get("gate", "") if wrong["verdict"] == "reject" else ", ".join(wrong.get("unsettled", {}))
    cells = [name, f"{e['repository'].split('/')[1]}: {e['operator']}", f"{wrong['verdict']}", gate, case_words(wrong),
             wrong["seconds"], usual_words(wrong), verdict_words(fixed), fixed["seconds"], usual_words(fixed)]  # fmt: skip
    return "| " + " | ".join(clean(c) for c in cells) + " |"


def full_row(name: str, e: dict[str, Any]) -> str:
    r = e["results"]["fixed"]
    cells = [name, f"{e['repository'].split('/')[1]}: {e['operator']}", r["verdict"], r.get("gate", ""), case_words(r),
             r["seconds"], usual_words(r)]  # fmt: skip
    return "| " + " | ".join(clean(c) for c in cells) + " |"


def plain_row(e: dict[str, Any]) -> str:
    r = e["results"]["fixed"]
    why = "" if r["verdict"] == "accept" else r["reason"]
    cells = [e["file"], e["entry"], f"{e['repository']}@{e['fixed'][:10]}", r["verdict"], why, r["seconds"]]
    return "| " + " | ".join(clean(c) for c in cells) + " |"


def clean(cell: Any) -> str:
    return str(cell).replace("|", "\\|").replace("\n", " ")


def verdict_words(r: dict[str, Any]) -> str:
    """An accept is one word; anything else says why."""
    return r["verdict"] if r["verdict"] == "accept" else f"{r['verdict']}: {r.get('summary', r['reason'])}"


def usual_words(r: dict[str, Any]) -> str:
    return "passes" if r["usual"]["passes"] else "fails"


def case_words(r: dict[str, Any]) -> str:
    if r["verdict"] != "reject":
        return ""
    c = r["case"]
    sizes = " ".join(f"{n}={v}" for n, v in {**c["dims"], **c["scalars"]}.items())
    return ", ".join(p for p in (sizes, c["dtype"]) if p)


def words(e: dict[str, Any]) -> str:
    r = e["results"].get("wrong", e["results"]["fixed"])
    if r["verdict"] != "reject":
        return f"Not rejected: {r['verdict']}, {r['reason']}."
    where = f" ({r['where']})" if r["where"] else ""
    return f"`{r['gate']}` ({r['class']}){where}: {r['summary']}"


def closing(bugs: dict[str, Any]) -> str:
    """The counts, made of the rows above."""
    wrong, fixed = ([e["results"][s] for e in bugs.values()] for s in ("wrong", "fixed"))
    seen = sum(r["verdict"] == "reject" for r in wrong)
    usual = sum(not r["usual"]["passes"] for r in wrong)
    good = sum(r["verdict"] == "accept" for r in fixed)
    bad = sum(r["verdict"] == "reject" for r in fixed)
    return (f"\nOf {len(bugs)} wrong kernels `tilewright check` rejects {seen}, the usual check {usual}. Of the fixed ones "
            f"`tilewright check` accepts {good}, leaves {len(fixed) - good - bad} open and rejects {bad}.\n"
            + "".join(f"\n{n}, fixed commit: {e['still']}.\n" for n, e in bugs.items() if "still" in e))  # fmt: skip


if __name__ == "__main__":
    main()
