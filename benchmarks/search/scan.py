"""Every point of a declared space, called and timed: what a search is judged against.

A point is compiled as it would be anywhere else, called on one draw of each workload, and compared with the reference in
float64; then it and the start are called by turns and the lowest time of each is kept. That is a ranking, not a claim: what
comes out on top is checked and measured by the protocol afterwards (``judge.py``).
"""

from __future__ import annotations

import ctypes
import json
import math
import runpy
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from tilewright.kernel.languages.native import compile_c
from tilewright.measure.state import one_core
from tilewright.search.proposers._declared import Space, read

CALLS = 12
"""Calls of a point on a workload, by turns with the start; the lowest time of each counts."""
SECONDS_MOST = 0.4
"""After so long on one workload a point is left with the calls that it got, of at least three."""


class Bench:
    """The workloads of a task with inputs and right outputs, and the start's library."""

    def __init__(self, problem: Path, start: str):
        task = runpy.run_path(str(problem))["TASK"]
        rng = np.random.default_rng(20_260)
        self.cases = [_case(task, getattr(w, "dims", w), rng) for w in task.workloads]
        self.start = ctypes.CDLL(start).kernel

    def point(self, library: str) -> dict[str, Any]:
        """``ratio`` of the start's time over this one's, a geometric mean over workloads, or ``failure``."""
        kernel, logs = ctypes.CDLL(library).kernel, []
        for arguments, out, want in self.cases:
            out.fill(np.nan)
            kernel(*arguments)
            if not np.allclose(out, want, rtol=1e-3, atol=1e-4):
                return {"failure": "wrong"}
            logs.append(math.log(_turns(partial(self.start, *arguments), partial(kernel, *arguments))))
        return {"ratio": math.exp(sum(logs) / len(logs))}


def _case(task: Any, dims: dict[str, int], rng: np.random.Generator) -> tuple[list[Any], np.ndarray, np.ndarray]:
    """Arguments as a native kernel is called with them (inputs, output, sizes), the output, and what it must hold."""
    inputs = [torch.from_numpy(rng.standard_normal(s.sizes(dims)).astype(np.float32)) for s in task.inputs.values()]
    want = task.reference(*(x.double() for x in inputs)).numpy()
    out = np.empty(want.shape, np.float32)
    sizes = [ctypes.c_int64(dims[d]) for d in task.dims]
    return [*(_at(x.numpy()) for x in inputs), _at(out), *sizes], out, want


def _at(array: np.ndarray) -> Any:
    """A pointer that keeps its array alive."""
    return array.ctypes.data_as(ctypes.c_void_p)


def _turns(start: Callable[[], Any], point: Callable[[], Any]) -> float:
    """Lowest time of the start over the lowest of the point."""
    best, began = [math.inf, math.inf], time.perf_counter()
    for turn in range(CALLS):
        for which, call in enumerate((start, point)):
            before = time.perf_counter()
            call()
            best[which] = min(best[which], time.perf_counter() - before)
        if turn >= 2 and time.perf_counter() - began > SECONDS_MOST:
            break
    return best[0] / best[1]


def points(space: Space) -> Iterator[tuple[dict[str, Any], str]]:
    for values in space.grid():
        yield dict(values), space.apply(values)


def varied(source: str, names: str) -> str:
    """The kernel with only these parameters declared; all of them if ``names`` is empty."""
    keep = [n for n in names.split(",") if n]
    lines = []
    for line in source.splitlines(keepends=True):
        declares = "knob:" in line and line.split()[1] not in keep
        lines.append(line.partition("//")[0].rstrip() + "\n" if keep and declares else line)
    return "".join(x for x in lines if not (keep and "require:" in x and not set(x.split()) & set(keep)))


def scan(problem: Path, source: str, file: Path, progress: Callable[[str], None] = print) -> list[dict[str, Any]]:
    """All points of ``source``; each is a line of ``file``, and those that are there are not taken again."""
    space = read(source, "native")
    known = {json.dumps(r["at"]): r for r in map(json.loads, file.read_text().splitlines())} if file.exists() else {}
    left = [(at, text) for at, text in points(space) if json.dumps(at) not in known]
    if left:
        texts = list(dict.fromkeys([source, *(text for _, text in left)]))
        with ThreadPoolExecutor(2) as pool:  # all are compiled before the first is timed, beside which nothing may run
            made = dict(zip(texts, pool.map(lambda text: compile_c(text, "kernel.c"), texts), strict=True))
        bench = Bench(problem, made[source])
        with file.open("a") as out, one_core():
            for i, (at, text) in enumerate(left, 1):
                known[json.dumps(at)] = row = {"at": at, **bench.point(made[text])}
                print(json.dumps(row), file=out, flush=True)
                if i % 32 == 0:
                    progress(f"  {i} of {len(left)} points")
        for library in made.values():
            Path(library).unlink(missing_ok=True)
    return [known[json.dumps(at)] for at, _ in points(space)]
