"""How near a tenth of the trials comes to the best of all points: matmul, row softmax, stencil in C.

    python benchmarks/search/native.py --out benchmarks/search/native.json

For each kernel: all points of its declared space are scanned (``scan.py``) and kept as a recorded space in ``spaces/``; the
strategies and samplers search the record at a tenth of its points; one live search does the same with checks and
measurements; its winner is measured beside the best of the scan. Run it on a machine that does nothing else: it needs two
cores and stops after 15 minutes. Stopped, it goes on where it was (``--work`` holds what was done).
"""

from __future__ import annotations

import argparse
import hashlib
import json
import platform
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import judge
import scan

from tilewright.measure import state
from tilewright.measure.protocol import PROTOCOL
from tilewright.search import plugins
from tilewright.search.proposers._declared import read
from tilewright.search.space import Space

ROOT = Path(__file__).resolve().parents[2]
KERNELS = ("matmul", "softmax", "stencil")
MINUTES = 15.0
LEFT_OUT = {"live": None, "live over the best known": None, "at the goal": False}


def main(arguments: list[str] | None = None) -> int:
    a = options(arguments)
    a.work.mkdir(parents=True, exist_ok=True)
    a.spaces.mkdir(parents=True, exist_ok=True)
    began, made = time.monotonic(), {}
    for name in a.only or KERNELS:
        if time.monotonic() - began > 60 * a.minutes:
            print(f"{name}: not begun, the time is over; the same command goes on", file=sys.stderr)
            break
        made[name] = one(name, a)
        a.out.write_text(json.dumps(report(made, a), indent=1) + "\n")
    return 0 if len(made) == len(a.only or KERNELS) else 1


def options(arguments: list[str] | None) -> argparse.Namespace:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--out", type=Path, default=Path(__file__).parent / "native.json")
    p.add_argument("--spaces", type=Path, default=Path(__file__).parent / "spaces", help="where recorded spaces go")
    p.add_argument(
        "--work", type=Path, default=ROOT / "build" / "search-native", help="what a stopped run goes on from"
    )
    p.add_argument("--only", nargs="*", choices=KERNELS)
    p.add_argument(
        "--vary", default="", help="vary these parameters alone, joined by commas: a short run, and no evidence"
    )
    p.add_argument("--seeds", type=int, default=10, help="games of each strategy and sampler")
    p.add_argument("--strategy", default="bandit", help="strategy of the live search")
    p.add_argument("--live-seconds", type=float, default=150.0, help="wall time of each live search; 0: none")
    p.add_argument("--gate-seconds", type=float, default=2.0)
    p.add_argument("--minutes", type=float, default=MINUTES)
    return p.parse_args(arguments)


def one(name: str, a: argparse.Namespace) -> dict[str, Any]:
    """One kernel, from the scan to the comparison."""
    folder = ROOT / "examples" / f"07_search_{name}"
    problem, source = folder / "problem.py", scan.varied((folder / "kernel.c").read_text(), a.vary)
    key = hashlib.sha256(f"{source}{problem.read_text()}{platform.node()}".encode()).hexdigest()[:12]
    work = a.work / f"{name}-{key}"
    work.mkdir(exist_ok=True)
    (work / "kernel.c").write_text(source)
    print(f"{name}: scanning {sum(1 for _ in read(source, 'native').grid())} points", flush=True)
    rows = kept(work / "scan.json", lambda: timed(lambda: scan.scan(problem, source, work / "points.jsonl")))
    space = recorded(name, source, rows["result"], a.spaces)
    best = max((r for r in rows["result"] if "ratio" in r), key=lambda r: r["ratio"])
    found = {"points": len(rows["result"]), "wrong": sum("ratio" not in r for r in rows["result"]),
             "exhaustive": not a.vary, "scan seconds": rows["seconds"], "best": best,
             "trials": judge.budget(len(rows["result"]))}  # fmt: skip
    found |= studied(name, space, source, rows["result"], a)
    return found | (lively(name, problem, source, best, found["trials"], work, a) if a.live_seconds else LEFT_OUT)


def lively(
    name: str, problem: Path, source: str, best: dict[str, Any], trials: int, work: Path, a: argparse.Namespace
) -> dict[str, Any]:
    """A live search, and its winner beside the best of the scan."""
    limit, ledger = (f"{trials}trials", f"{a.live_seconds:g}s"), work / "ledger.sqlite"
    print(f"{name}: a live search of {' and '.join(limit)}", flush=True)
    kernel, text = work / "kernel.c", read(source, "native").apply(best["at"])
    live = kept(work / "live.json", lambda: judge.live(problem, kernel, limit, ledger, a.strategy, a.gate_seconds))
    beside = kept(work / "best.json", lambda: judge.against_best(
        problem, kernel, text, live["source"], ledger, work / "best", a.gate_seconds))  # fmt: skip
    print(f"{name}: {live['answer']}; over the best known: {beside}", flush=True)
    return {"live": {k: v for k, v in live.items() if k != "source"}, "live over the best known": beside,
            "at the goal": beside.get("ratio", 0.0) >= judge.GOAL}  # fmt: skip


def studied(name: str, space: Space, source: str, rows: list[dict[str, Any]], a: argparse.Namespace) -> dict[str, Any]:
    if space.best <= 0:
        return {"strategies": {}, "samplers": {}, "study left out": "no point was faster than the start"}
    print(f"{name}: strategies and samplers on the record", flush=True)
    return {"strategies": judge.by_strategies(space, plugins.names("strategies"), a.seeds),
            "samplers": judge.by_samplers(source, rows, a.seeds)}  # fmt: skip


def recorded(name: str, source: str, rows: list[dict[str, Any]], folder: Path) -> Space:
    """The scan as a space that ``tilewright study`` reads."""
    data = {"name": name, "start": dict(read(source, "native").now), "points": rows}
    (folder / f"{name}.json").write_text(json.dumps(data) + "\n")
    return Space.of_grid(name, data["start"], rows)


def kept(file: Path, make: Any) -> Any:
    """What a file holds, or what is made now and kept there."""
    if not file.exists():
        made = make()
        file.write_text(json.dumps(made))
    return json.loads(file.read_text())


def timed(make: Any) -> dict[str, Any]:
    began = time.monotonic()
    result = make()
    return {"result": result, "seconds": time.monotonic() - began}


def report(made: dict[str, Any], a: argparse.Namespace) -> dict[str, Any]:
    facts = state.snapshot()
    return {"what": "speed reached in a tenth of the trials over the best of all points", "goal": judge.GOAL,
            "share of trials": judge.SHARE, "goal reached": all(m["at the goal"] and m["exhaustive"] for m in made.values()),
            "scan": "lowest of 12 calls a workload by turns with the start, geometric mean over workloads; a ranking",
            "live": "checked and timed by the protocol; the winner beside the best of the scan as well",
            "protocol": PROTOCOL.version, "machine": {"cpu": state.cpu_name(), "processors": facts["processors"],
                                                      "load": facts["load"], "system": platform.platform()},
            "versions": state.versions(), "seeds": a.seeds, "kernels": made}  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
