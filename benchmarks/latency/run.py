#!/usr/bin/env python3
"""How long does a verdict take, beside the field's usual check? Same kernels, one run, one process warmed up first.

    python benchmarks/latency/run.py [--kernels 24] [--jobs 2] -o benchmarks/latency.json

Writes the evidence: per kernel the seconds of ``check`` and of the usual check (three random inputs of one shape, allclose at
1e-2, in the same sealed children); the medians; the throughput of an audit of all of them with ``--jobs``; and a
``tilewright check`` in a new process, start-up included, twice (the first may read its files from the disk). Seconds depend on the machine; the ratios are what counts.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tilewright.api import examine_and_record, silent
from tilewright.audit import audit
from tilewright.corpus.labels import read_labels
from tilewright.corpus.usual import usual_check
from tilewright.prove.child.pool import server

ROOT = Path(__file__).resolve().parents[2]


def main() -> None:
    """Measure and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--kernels", type=int, default=24, help="how many of the corpus, evenly spread over its families"
    )
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("-o", "--output", type=Path, default=ROOT / "benchmarks" / "latency.json")
    options = parser.parse_args()
    everything = read_labels(ROOT / "corpus")
    step = max(1, len(everything) // options.kernels)
    chosen = [pair for pair, _ in everything][::step][: options.kernels]
    os.environ["TILEWRIGHT_LEDGER"] = str(Path(tempfile.mkdtemp()) / "ledger.sqlite")
    started = time.perf_counter()
    example = ROOT / "examples" / "01_softmax"
    command = [
        sys.executable,
        "-m",
        "tilewright",
        "check",
        str(example / "problem.py"),
        str(example / "right.py"),
        "--quiet",
    ]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    first = time.perf_counter() - started  # with whatever the system holds of the files
    started = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    cold = time.perf_counter() - started
    server().wait_ready()
    rows = []
    for pair in chosen:
        started = time.perf_counter()
        verdict = examine_and_record(str(pair.problem), str(pair.kernel), record=False, progress=silent()).verdict
        seconds = time.perf_counter() - started
        passes, usual, _ = usual_check(pair)
        rows.append({"kernel": pair.name, "verdict": verdict.verdict, "seconds": round(seconds, 3), "usual_passes": passes,
                     "usual_seconds": round(usual, 3)})  # fmt: skip
        print(
            f"{pair.name:60} {verdict.verdict:10} {seconds:6.2f} s   usual {usual:5.2f} s {'passes' if passes else 'fails'}"
        )
    started = time.perf_counter()
    audit(chosen, jobs=options.jobs, fresh=True)
    wall = time.perf_counter() - started
    ours, usual_s = [r["seconds"] for r in rows], [r["usual_seconds"] for r in rows]
    evidence = {
        "what": "seconds per verdict beside the usual check", "date": time.strftime("%Y-%m-%d"),
        "machine": {"cpu": _cpu(), "cores": os.cpu_count(), "system": platform.system(), "load_before": os.getloadavg()[0]},
        "versions": server().versions, "first_check_seconds": round(first, 2), "cold_check_seconds": round(cold, 2), "kernels": len(rows),
        "median_check_seconds": statistics.median(ours), "median_usual_seconds": statistics.median(usual_s),
        "ratio_of_medians": round(statistics.median(ours) / statistics.median(usual_s), 2),
        "audit": {"jobs": options.jobs, "seconds": round(wall, 1), "kernels_per_minute": round(60 * len(rows) / wall, 1)},
        "rows": rows,
    }  # fmt: skip
    options.output.write_text(json.dumps(evidence, indent=1) + "\n")
    print(f"cold check {cold:.1f} s; median {evidence['median_check_seconds']:.2f} s, usual {evidence['median_usual_seconds']:.2f} s; "
          f"audit {evidence['audit']['kernels_per_minute']} kernels a minute with {options.jobs} jobs")  # fmt: skip


def _cpu() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor()


if __name__ == "__main__":
    main()
