"""From plain Triton kernels: what a search of a minute reaches, and how that stands against torch.compile.

    python benchmarks/h200/search/run.py --out benchmarks/h200/search.json

For each of softmax, cross entropy and RMSNorm: ``tilewright search --device cuda --budget 60s`` from the plain kernel beside
this file, on the task of ``benchmarks/h200``; then ``tilewright bench`` of the winner (or, where there is none, of the kernel
as it was) against torch.compile. A step that fails is told in the evidence and the next one begins. What was done is kept in
``--work``: the same command goes on where it was stopped.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import sys
import time
import traceback
from collections import Counter
from pathlib import Path
from typing import Any

from tilewright import cli
from tilewright.ledger import Ledger
from tilewright.measure import state
from tilewright.report import search_changes
from tilewright.search import store

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
TASKS = ("softmax", "cross_entropy", "rms_norm")
OPTIONAL = {"optuna": "the sampler tpe of knobs", "tree_sitter": "skills for C"}


def main(arguments: list[str] | None = None) -> int:
    """Exit code: 0 all was measured, 1 something was not (the evidence says what)."""
    a = options(arguments)
    a.work.mkdir(parents=True, exist_ok=True)
    for name, what in missing().items():
        print(f"{name} is not installed: {what} left out", file=sys.stderr)
    made: dict[str, Any] = {}
    for name in a.only or TASKS:
        print(f"{name}: search", flush=True)
        made[name] = one(name, a)
        a.out.write_text(json.dumps(report(made, a), indent=1) + "\n")
        print(f"{name}: {told(made[name])}", flush=True)
    return int(not all("ratio to torch.compile" in m for m in made.values()))


def options(arguments: list[str] | None) -> argparse.Namespace:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--out", type=Path, default=HERE.parent / "search.json")
    p.add_argument("--work", type=Path, default=ROOT / "build" / "search-h200", help="ledger, reports, winners")
    p.add_argument("--only", nargs="*", metavar="TASK", help=f"of {', '.join(TASKS)}")
    p.add_argument("--kernels", type=Path, default=HERE, help="TASK/kernel.py to begin with")
    p.add_argument("--problems", type=Path, default=HERE.parent, help="TASK/problem.py")
    p.add_argument("--device", default="cuda")
    p.add_argument("--budget", default="60s")
    p.add_argument("--strategy", default="bandit")
    p.add_argument("--gate-seconds", type=float, default=2.0)
    p.add_argument("--full", action="store_true", help="the whole protocol against torch.compile, not the quick one")
    return p.parse_args(arguments)


def missing() -> dict[str, str]:
    """Optional packages that are not here, and what goes without them."""
    return {n: what for n, what in OPTIONAL.items() if importlib.util.find_spec(n) is None}


def one(name: str, a: argparse.Namespace) -> dict[str, Any]:
    """Search, then bench; each with its exit code and time."""
    problem, kernel = a.problems / name / "problem.py", a.kernels / name / "kernel.py"
    work = a.work / name
    work.mkdir(exist_ok=True)
    ledger, best, html = work / "ledger.sqlite", work / "best.py", work / "search.html"
    common = ["--device", a.device, "--ledger", str(ledger), "--gate-seconds", str(a.gate_seconds)]
    run = newest(ledger)
    how = [] if run is None else ["--run", run.id]
    asked = how or [str(problem), str(kernel), "--budget", a.budget, "-p", "knobs", "-p", "rewrites", "-s", a.strategy]
    found = {"search": step(["search", *asked, *common, "-o", str(best), "--html", str(html)])}
    if (record := newest(ledger)) is None or record.ended is None:
        return found | {"failed": "the search did not end; the same command goes on with it"}
    found |= searched(ledger, record, a.budget)
    subject, measured = (best if best.exists() else kernel), work / "bench.json"
    if measured.exists() and json.loads(measured.read_text()).get("kernel") != str(subject):
        measured.unlink()
    print(f"{name}: {subject.name} against torch.compile", flush=True)
    quick = [] if a.full else ["--quick"]
    found["bench"] = step(
        ["bench", str(problem), str(subject), *common, "--baselines", "compile", *quick, "--json", str(measured)]
    )
    return found | against(measured)


def step(arguments: list[str]) -> dict[str, Any]:
    """A command of Tilewright; a crash of it is told, and does not end the script."""
    began = time.monotonic()
    try:
        code: int | str = cli.run(arguments)
    except Exception:
        code = traceback.format_exc(limit=3)
        print(code, file=sys.stderr)
    return {"command": "tilewright " + " ".join(relative(w) for w in arguments), "exit code": code,
            "seconds": round(time.monotonic() - began, 1)}  # fmt: skip


def relative(word: str) -> str:
    return word.replace(f"{ROOT}/", "")


def newest(ledger: Path) -> store.RunRecord | None:
    runs = store.runs(Ledger.open(str(ledger))) if ledger.exists() else []
    return next((r for r in runs if not (r.ended and r.ended.get("stopped") == "it could not begin")), None)


def searched(ledger: Path, record: store.RunRecord, budget: str) -> dict[str, Any]:
    """How the run ended, what was tried, what failed and how."""
    tree, end = store.tree_of(Ledger.open(str(ledger)), record.id), record.ended or {}
    kinds = Counter(n.failure.kind for n in tree if n.failure is not None)
    examples = {n.failure.kind: n.failure.message[:300] for n in tree if n.failure is not None}
    over = {k: end.get(k) for k in ("ratio", "low", "high")}
    return {"budget": budget, "run": record.id, "answer": end["answer"], "reason": end["reason"], "over the start": over,
            "trials": len(tree) - 1, "accepted": sum(n.accepted for n in tree), "failures": dict(kinds),
            "failures, one of each": examples, "cost": end["cost"], "start accepted": tree.root.accepted if tree.nodes else None,
            "winner": search_changes.summary(tree, end.get("node"))}  # fmt: skip


def against(file: Path) -> dict[str, Any]:
    """Ratio to torch.compile: its time over the kernel's, with interval; or why there is none."""
    if not file.exists():
        return {"not measured": "bench left no measurement; its exit code and words say why"}
    m = json.loads(file.read_text())
    if "workloads" not in m:
        return {"not measured": f"the kernel is not accepted: {m.get('reason', '')}"}
    same = {k: m.get(k) for k in ("answer", "reason", "protocol_version", "id")}
    by_workload = {}
    for w in m["workloads"]:
        for f in w["figures"]:
            for r in f["ratios"]:
                if "compile" in r["baseline"]:
                    by_workload[f"{w['name']}, {f['cache']}, {f['launch']}"] = r["interval"]
    found: dict[str, Any] = {"bench says": same, "by workload": by_workload}
    ratio = {k: m["ratio"][k] for k in ("median", "low", "high")} if m.get("ratio") else None
    if ratio is not None and m["answer"] in ("faster", "slower", "no measurable gain"):
        return found | {"ratio to torch.compile": ratio}
    return found | {"not measured": f"{m['answer']}: {m.get('reason', '')}", "ratio, which claims nothing": ratio}


def told(m: dict[str, Any]) -> str:
    ratio = m.get("ratio to torch.compile")
    beside = (
        f"{ratio['median']:.3g}x torch.compile ({ratio['low']:.3g} to {ratio['high']:.3g})" if ratio else "not measured"
    )
    return f"{m.get('answer', 'no end')}, {m.get('trials', 0)} trials, failures {m.get('failures', {})}; {beside}"


def report(made: dict[str, Any], a: argparse.Namespace) -> dict[str, Any]:
    return {"what": "searches from plain Triton kernels, and their winners against torch.compile", "device": a.device,
            "machine": machine(a.device), "versions": state.versions(), "without": missing(), "tasks": made}  # fmt: skip


def machine(device: str) -> dict[str, Any]:
    try:
        return state.snapshot(device)
    except Exception as e:
        return {"unknown": str(e)}


if __name__ == "__main__":
    sys.exit(main())
