"""A/A study: a kernel against itself, many times. How often does the protocol say ``faster`` when nothing is?

    python benchmarks/null/study.py --count 600 --out benchmarks/null/cpu.json
    python benchmarks/null/study.py --device cuda --count 200 --planted 10 --out benchmarks/null/h200.json

Each comparison opens new processes for candidate, twin and baseline. Comparisons that end ``too noisy`` gave no answer and
are counted apart; the study goes on until ``--count`` gave one. It goes on where it was stopped: every comparison is a line
of OUT.lines. ``--planted N`` adds N comparisons with a kernel that does a tenth more work, to show that the protocol can
tell. Run it on a machine that does nothing else: it keeps two cores busy, a second or two a comparison.

On a GPU an opening costs seconds, so that ``EACH`` comparisons are made with one set of processes, by turns launched plainly
and replayed from a graph.
"""

from __future__ import annotations

import argparse
import functools
import json
import math
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from tilewright.kernel import read
from tilewright.measure import conclude, cuda, state
from tilewright.measure.baselines import Context, offers
from tilewright.measure.hand import Source
from tilewright.measure.protocol import PROTOCOL, quick
from tilewright.measure.record import CANDIDATE, TWIN
from tilewright.measure.stage import make, secret
from tilewright.measure.workload import Setting, figure_of, name_of, play
from tilewright.prove.examination import Examination
from tilewright.prove.examine import open_task

HERE = Path(__file__).parent
PROBLEM = str(HERE / "problem.py")
TURNS = {
    "cpu": (("plain.c", 0), ("plain.c", 1), ("plain.c", 2), ("plain.py", 0), ("plain.py", 1)),
    "cuda": (("plain_triton.py", 3), ("plain.py", 3), ("plain_triton.py", 0), ("plain.py", 4), ("plain_triton.py", 4)),
}
PLANTED = {"cpu": ("tenth.c", "plain.c"), "cuda": ("tenth_triton.py", "plain_triton.py")}
EACH = 10


def main() -> int:
    a = arguments()
    protocol = PROTOCOL if a.full else quick()
    lines = a.out.with_suffix(".lines")
    known = [json.loads(x) for x in lines.read_text().splitlines()] if lines.exists() else []
    rows = [r for r in known if r["protocol"] == protocol.sha256()]
    if len(rows) < len(known):
        print(f"{len(known) - len(rows)} comparisons under another protocol are left out", file=sys.stderr)
    started = time.monotonic()
    with lines.open("a") as out:
        while (todo := wanted(rows, a)) is not None and time.monotonic() - started < a.minutes * 60:
            compared = compare if a.device == "cpu" else on_device
            for found in compared(*todo, protocol):
                row = {**found, "protocol": protocol.sha256()}
                rows.append(row)
                out.write(json.dumps(row) + "\n")
                out.flush()
                told(rows, a, started)
    found = {
        "method": __doc__.split("\n")[0],
        "protocol": json.loads(protocol.body()),
        "protocol_sha256": protocol.sha256(),
        "machine": conclude.machine(a.device),
        "state": state.snapshot(a.device),
        "summary": summary(rows, protocol),
        "rows": rows,
    }
    a.out.write_text(json.dumps(found, indent=1))
    print(json.dumps(found["summary"], indent=1))
    return 0 if wanted(rows, a) is None else 3


def arguments() -> argparse.Namespace:
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--count", type=int, default=600, help="null comparisons with an answer")
    p.add_argument("--planted", type=int, default=30, help="comparisons with a tenth more work")
    p.add_argument("--out", type=Path, default=HERE / "cpu.json")
    p.add_argument("--minutes", type=float, default=30.0, help="stop then; the same command goes on")
    p.add_argument("--device", choices=tuple(TURNS), default="cpu")
    p.add_argument("--full", action="store_true", help="the full protocol instead of the quick one")
    return p.parse_args()


def wanted(rows: list[dict], a: argparse.Namespace) -> tuple[str, str, int] | None:
    """The next comparison: candidate, baseline, workload; None when all are there."""
    null = [r for r in rows if r["candidate"] == r["baseline"]]
    if sum(r["answer"] != "too noisy" for r in null) < a.count:
        turns, each = TURNS[a.device], 1 if a.device == "cpu" else EACH
        name, which = turns[len(null) // each % len(turns)]
        return name, name, which
    planted = [r for r in rows if r["candidate"] != r["baseline"]]
    which = len(planted) % 3 if a.device == "cpu" else 3
    return (*PLANTED[a.device], which) if len(planted) < a.planted else None


@functools.cache
def opened(candidate: str) -> Examination:
    """The reference and its truth; what is timed has new processes in each comparison."""
    sheet, session = open_task(PROBLEM)
    return Examination(sheet, read(str(HERE / candidate)), session)


def compare(candidate: str, baseline: str, which: int, protocol) -> Iterator[dict]:
    exam = opened(candidate)
    found = offers(Context(exam.sheet, PROBLEM, files=(str(HERE / baseline),)), ())
    workload = exam.sheet.workloads[which].model_copy(update={"dtype": "float32"})
    began = time.monotonic()
    result = play(Setting(exam, PROBLEM, exam.kernel, found, protocol, None), workload).result
    yield row(candidate, baseline, result.name, result.figure, result.answer, result.reason, began)


def on_device(candidate: str, baseline: str, which: int, protocol) -> Iterator[dict]:
    exam, place = opened(candidate), cuda.start()
    setting = Setting(exam, PROBLEM, exam.kernel, (), protocol, None, place=place)
    workload = exam.sheet.workloads[which].model_copy(update={"dtype": "float32"})
    stage = make(exam, PROBLEM, workload, protocol, secret(), 0, place)
    try:
        arms = {CANDIDATE: exam.kernel, TWIN: exam.kernel, baseline: read(str(HERE / baseline))}
        for name, kernel in arms.items():
            player = stage.enter(name, Source(name, kernel=kernel))
            if not player.ready:
                raise SystemExit(f"{name}: {player.wrong or player.unavailable}")
        for i in range(EACH):
            began, launch = time.monotonic(), "graph" if i % 2 else "plain"
            figure, _ = figure_of(setting, stage, "warm", launch)
            yield row(
                candidate, baseline, f"{name_of(workload)}, {launch}", figure, figure.answer, figure.reason, began
            )
    finally:
        stage.close()


def row(candidate: str, baseline: str, workload: str, figure, answer: str, reason: str, began: float) -> dict:
    ratio = figure.ratio() if figure else None
    return {
        "candidate": candidate,
        "baseline": baseline,
        "workload": workload,
        "answer": answer,
        "reason": reason,
        "ratio": ratio and ratio.interval.model_dump(),
        "seconds": time.monotonic() - began,
        "variation": ratio and ratio.variation,
        "noise": figure.noise if figure else None,
        "null": figure.null.model_dump() if figure and figure.null else None,
        "load": state.snapshot()["load"][0],
        "blocks": len(figure.arms[0].blocks) if figure and figure.arms else 0,
    }


def upper(k: int, n: int, level: float = 0.99) -> float:
    """Upper end of the exact interval of a share (C. Clopper and E. Pearson, 1934), one-sided."""
    if n == 0 or k >= n:
        return 1.0
    low, high = k / n, 1.0
    for _ in range(60):
        p = (low + high) / 2
        tail = sum(math.comb(n, i) * p**i * (1 - p) ** (n - i) for i in range(k + 1))
        low, high = (p, high) if tail > 1 - level else (low, p)
    return high


def summary(rows: list[dict], protocol) -> dict:
    null = [r for r in rows if r["candidate"] == r["baseline"]]
    answered = [r for r in null if r["answer"] in ("faster", "slower", "no measurable gain")]
    faster = sum(r["answer"] == "faster" for r in answered)
    planted = [r for r in rows if r["candidate"] != r["baseline"]]
    return {
        "null comparisons": len(null),
        "answered": len(answered),
        "answers": {x: sum(r["answer"] == x for r in null) for x in sorted({r["answer"] for r in null})},
        "false faster": faster,
        "upper bound of its rate, 99%": upper(faster, len(answered)),
        "smallest effect": protocol.smallest_effect,
        "median width of the interval": middle([(r["ratio"]["high"] - r["ratio"]["low"]) for r in answered]),
        "median of one run in the interval of the next": agreement(answered),
        "planted, a tenth more work": {
            x: sum(r["answer"] == x for r in planted) for x in {r["answer"] for r in planted}
        },
        "seconds": sum(r["seconds"] for r in rows),
    }


def agreement(rows: list[dict]) -> dict:
    """Pairs of successive runs of one comparison: in how many does the median of each lie in the other's interval?"""
    last, pairs, agree = {}, 0, 0
    for r in rows:
        key = (r["candidate"], r["workload"])
        if (old := last.pop(key, None)) is None:
            last[key] = r
            continue
        a, b = old["ratio"], r["ratio"]
        pairs += 1
        agree += b["low"] <= a["median"] <= b["high"] and a["low"] <= b["median"] <= a["high"]
    return {"pairs": pairs, "agree": agree}


def middle(x: list[float]) -> float | None:
    return sorted(x)[len(x) // 2] if x else None


def told(rows: list[dict], a: argparse.Namespace, started: float) -> None:
    null = [r for r in rows if r["candidate"] == r["baseline"]]
    done = sum(r["answer"] != "too noisy" for r in null)
    r = rows[-1]
    print(
        f"{done}/{a.count} answered of {len(null)}, {len(rows) - len(null)}/{a.planted} planted, "
        f"{time.monotonic() - started:.0f} s; {r['candidate']} {r['workload']}: {r['answer']}"
        + (f" {r['ratio']['median']:.3f}" if r["ratio"] else ""),
        flush=True,
    )


if __name__ == "__main__":
    sys.exit(main())
