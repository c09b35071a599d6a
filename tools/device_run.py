#!/usr/bin/env python3
"""Everything that needs a GPU, in one go and within a time: the tests in tests/gpu, the examples, a share of the corpus.

    PYTHONPATH=src python tools/device_run.py --out DIR --seconds 280 --every 13 --jobs 6

Writes ``verdicts.jsonl`` (one verdict a line, as soon as it is there), ``tests.txt``, ``probe.json`` and ``summary.txt`` to
DIR. Each step has a time of its own and fails alone.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
import tomllib
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
EXAMPLES = (
    ("06_cuda_softmax", "right.cu", "accept"), ("06_cuda_softmax", "wrong_tail.cu", "reject"),
    ("06_cuda_softmax", "wrong_barrier.cu", "reject"), ("06_cuda_softmax", "wrong_compile.cu", "reject"),
    ("06_cuda_softmax", "right_inline.py", "accept"), ("01_softmax", "right.py", "accept"),
    ("01_softmax", "wrong.py", "reject"), ("02_kernelbench", "right.py", "accept"),
    ("02_kernelbench", "wrong.py", "reject"), ("04_backward", "right.py", "accept"),
)  # fmt: skip
MACHINE = (
    "nvidia-smi -L; ls -la /dev/nvidia* | head -20",
    "command -v nvcc compute-sanitizer ninja g++",
    "python3 -c 'import torch, triton; print(torch.__version__, triton.__version__, torch.cuda.is_available())'",
)
PROBE = """
import json, sys
from tilewright.prove.device import machine
from tilewright.prove.child.session import Limits
kind, out = sys.argv[1], {}
for without in machine.LADDER:
    limits = machine.given(Limits(), kind, without, "0")
    out[", ".join(without) or "full seal"] = machine._hello(kind, "best", limits)
limits = machine.given(Limits(), kind, (), "0")
limits.device["local_sockets"] = False
out["full seal, no sockets at all"] = machine._hello(kind, "best", limits)
print(json.dumps(out, default=str, indent=1))
"""


class Steps:
    """What is to be done, until the time is up."""

    def __init__(self, out: Path, seconds: float, device: str):
        self.out, self.device = out, device
        self.ends = time.monotonic() + seconds
        self.lock = threading.Lock()
        self.lines: list[str] = []
        self.scratch = Path(tempfile.mkdtemp(prefix="device-run-"))

    def left(self) -> float:
        return self.ends - time.monotonic()

    def run(self, command: list[str], seconds: float) -> tuple[int, str]:
        """Exit status and output; 124 where the time is up."""
        seconds = min(seconds, self.left())
        if seconds < 5:
            return 124, "no time left"
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=ROOT,
                                   start_new_session=True)  # fmt: skip
        try:
            said, _ = process.communicate(timeout=seconds)
            return process.returncode, said
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            said, _ = process.communicate()
            return 124, said

    def note(self, line: str) -> None:
        with self.lock:
            self.lines.append(line)
            print(line, flush=True)
            (self.out / "summary.txt").write_text("\n".join(self.lines) + "\n")

    def check(self, name: str, problem: Path, kernel: Path, expected: str) -> None:
        """One kernel; its verdict goes into the file at once."""
        started, made = time.monotonic(), self.scratch / (name.replace("/", "_") + ".json")
        code, said = self.run(
            [sys.executable, "-m", "tilewright", "check", str(problem), str(kernel), "--device", self.device, "--quiet",
             "--json", str(made), "--ledger", f"{made}.db", "--gate-seconds", "5"], 120.0)  # fmt: skip
        verdict: dict[str, Any] = json.loads(made.read_text()) if made.is_file() else {}
        verdict.update(name=name, expected=expected, exit=code, wall=time.monotonic() - started)
        if not verdict.get("verdict"):
            verdict["said"] = said[-3000:]
        with self.lock, (self.out / "verdicts.jsonl").open("a") as f:
            f.write(json.dumps(verdict) + "\n")
        got = verdict.get("verdict", f"exit {code}")
        mark = "ok " if got == expected else "???"
        why = verdict.get("reason") or said.strip()[-300:].replace("\n", " / ")
        self.note(f"{mark} {name}: {got}, expected {expected} ({verdict['wall']:.0f} s) {why[:300]}")


def corpus(every: int) -> list[tuple[str, Path, Path, str]]:
    """Every ``every``-th kernel of the corpus, by name."""
    found = []
    for labels in sorted((ROOT / "corpus").rglob("labels.toml")):
        for stem, body in sorted(tomllib.loads(labels.read_text()).items()):
            file = labels.parent / f"{stem}.py"
            if file.is_file():
                name = str(file.relative_to(ROOT))
                found.append((name, labels.parent / "problem.py", file, body["default"]))
    return found[::every]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seconds", type=float, default=280.0)
    parser.add_argument("--every", type=int, default=13)
    parser.add_argument("--jobs", type=int, default=6)
    parser.add_argument("--device", default="cuda")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    steps = Steps(given.out, given.seconds, given.device)
    for command in MACHINE:
        code, said = steps.run(["sh", "-c", command], 20.0)
        steps.note(f"{command}: exit {code} {said.strip()[:600]}")
    code, said = steps.run([sys.executable, "-c", PROBE, given.device], 60.0)
    (given.out / "probe.json").write_text(said)
    steps.note(f"probe: exit {code} {said[-1500:]}")

    def tests() -> None:
        workers = str(max(given.jobs // 2, 1))
        command = [sys.executable, "-m", "pytest", "tests/gpu", "-q", "-n", workers]
        code, said = steps.run(command, 240.0)
        (given.out / "tests.txt").write_text(said)
        steps.note(f"tests: exit {code} {said[-600:]}")

    work = [(f"examples/{f}/{k}", ROOT / "examples" / f / "problem.py", ROOT / "examples" / f / k, e)
            for f, k, e in EXAMPLES]  # fmt: skip
    with ThreadPoolExecutor(given.jobs + 1) as pool:
        waiting = [pool.submit(tests)] + [pool.submit(steps.check, *w) for w in (*work, *corpus(given.every))]
        for done in as_completed(waiting):
            if (e := done.exception()) is not None:
                steps.note(f"a step failed: {e!r}")


if __name__ == "__main__":
    main()
