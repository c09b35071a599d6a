"""Time the evaluator: kernel and reference in the finite field, six shapes and three draws each, and whether they agree.

    python benchmarks/ir_speed/run.py

Writes `benchmarks/ir_speed.json`: seconds of one core for all eighteen comparisons of an operator (compiling included), of
which the kernel's evaluation, the reference's, and a plain float64 evaluation of the same kernel as a yardstick. Seconds are
of processor time on one thread, so that a busy machine measures the same; they are of one machine, the ratio travels better. Ends with an error where an operator needs more than `LIMIT` seconds or doesn't
agree with its reference, or where a planted mistake (`acc` of one shape scaled) does.

A larger problem is not evaluated whole: of a product of 2048 x 2048 matrices a sample of the programs runs (the corners of the
grid, their neighbours, random ones), and `sampled` says how many of how many.
"""

from __future__ import annotations

import datetime
import json
import os
import platform
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import triton

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import kernels

from tilewright.ir import launch, ops
from tilewright.ir.domains.field import Field
from tilewright.ir.domains.real import Real
from tilewright.ir.phantom import corners
from tilewright.ir.torch_ops.calls import Calls
from tilewright.ir.torch_ops.context import Expected, Value

EVIDENCE = HERE.parent / "ir_speed.json"
LIMIT, DRAWS = 10.0, 3
aten = torch.ops.aten
ROWS = [(1, 1), (128, 1000), (64, 4096), (333, 127), (1000, 513), (37, 2049)]


@dataclass(frozen=True)
class Case:
    """A launch with its reference: sizes of the inputs, of the output, and how both are called."""

    inputs: tuple[tuple[int, ...], ...]
    output: tuple[int, ...]
    dtype: torch.dtype
    kernel: Any
    grid: tuple[int, ...]
    numbers: tuple[Any, ...]
    reference: Callable[[Any, list[Value], tuple[Expected, ...]], Any]
    label: str


def power(n: int) -> int:
    return max(16, triton.next_power_of_2(n))


def softmaxes() -> Iterator[Case]:
    for r, n in ROWS:
        yield Case(((r, n),), (r, n), torch.float32, kernels.softmax, (r,), (n, power(n)),
                   lambda c, x, out: c.call(aten._softmax.default, [x[0], -1, False], {}, out), f"{r}x{n}")  # fmt: skip


def layer_norms() -> Iterator[Case]:
    for r, n in ROWS:
        rows = Expected((r, 1), torch.float32)
        yield Case(((r, n), (n,), (n,)), (r, n), torch.float32, kernels.layer_norm, (r,), (n, 1e-5, power(n)),
                   lambda c, x, out, n=n, rows=rows: c.call(aten.native_layer_norm.default, [x[0], [n], x[1], x[2], 1e-5], {},
                                                            (*out, rows, rows)), f"{r}x{n}")  # fmt: skip


def matmuls() -> Iterator[Case]:
    for m, n, k in [(512, 512, 512), (511, 513, 500), (1, 512, 512), (512, 1, 512), (64, 48, 512), (300, 200, 100)]:
        yield Case(((m, k), (k, n)), (m, n), torch.float16, kernels.matmul, (-(-m // 64), -(-n // 64)), (m, n, k, 64, 64, 32),
                   lambda c, x, out: c.call(aten.mm.default, list(x), {}, out), f"{m}x{n}x{k}")  # fmt: skip


def attentions() -> Iterator[Case]:
    for heads, n, causal in [
        (1, 500, False),
        (1, 500, True),
        (2, 500, False),
        (1, 499, True),
        (2, 257, False),
        (1, 1, False),
    ]:
        size = (1, heads, n, 64)
        lse = Expected((1, heads, n), torch.float32)
        yield Case((size,) * 3, size, torch.float16, kernels.attention, (-(-n // 64), heads), (n, 0.125, 64, 64, 64, causal),
                   lambda c, x, out, causal=causal, lse=lse: c.call(
                       aten._scaled_dot_product_flash_attention_for_cpu.default, [*x, 0.0, causal], {}, (*out, lse)),
                   f"heads {heads}, N {n}, d 64{', causal' if causal else ''}")  # fmt: skip


OPERATORS = {"softmax": softmaxes, "layer norm": layer_norms, "matmul": matmuls, "flash attention": attentions}


def compare(case: Case, seed: int, spent: dict[str, float], scale: float = 1.0) -> bool:
    """Whether kernel and reference agree on a draw; adds to the times."""
    domain = Field(seed)
    flat = [domain.random((int(torch.tensor(s).prod()),)) for s in case.inputs]
    count = int(torch.tensor(case.output).prod())
    start = time.process_time()
    args = [launch.Arg(v, 0, case.dtype) for v in flat] + [launch.Arg(domain.exact(torch.zeros(count)), 0, case.dtype)]
    result = launch.run(case.kernel, case.grid, (*args, *case.numbers), domain=domain)
    mine = list(result.outputs.values())[len(flat)]
    middle = time.process_time()
    calls = Calls(domain)
    values = [Value(v.map(lambda t, s=s: t.reshape(s)), case.dtype) for v, s in zip(flat, case.inputs, strict=True)]
    theirs = case.reference(calls, values, (Expected(case.output, case.dtype),))[0].data
    spent["kernel"] += middle - start
    spent["reference"] += time.process_time() - middle
    got = mine.p if scale == 1.0 else (mine.p * scale) % domain_prime()
    return bool(torch.equal(got.reshape(case.output), theirs.p.expand(case.output)))


def domain_prime() -> int:
    from tilewright.ir.domains import residues

    return int(residues.P)


def plain(case: Case) -> float:
    """Seconds of the same launch in float64."""
    flat = [torch.randn(int(torch.tensor(s).prod()), dtype=case.dtype) for s in case.inputs]
    start = time.process_time()
    launch.run(
        case.kernel, case.grid, (*flat, torch.zeros(case.output, dtype=case.dtype), *case.numbers), domain=Real()
    )
    return time.process_time() - start


def measure(name: str) -> dict[str, Any]:
    """All shapes and draws of an operator."""
    cases = list(OPERATORS[name]())
    spent = {"kernel": 0.0, "reference": 0.0}
    start, wall = time.process_time(), time.perf_counter()
    agree = [compare(case, seed, spent) for case in cases for seed in range(DRAWS)]
    seconds, wall = time.process_time() - start, time.perf_counter() - wall
    caught = not compare(cases[1], 0, {"kernel": 0.0, "reference": 0.0}, scale=2.0)
    real = sum(plain(case) for case in cases for _ in range(DRAWS))
    return {
        "shapes": [case.label for case in cases], "draws": DRAWS, "seconds": round(seconds, 3), "wall_seconds": round(wall, 3),
        "kernel_seconds": round(spent["kernel"], 3), "reference_seconds": round(spent["reference"], 3),
        "float64_kernel_seconds": round(real, 3), "field_over_float64": round(spent["kernel"] / real, 2),
        "agree": f"{sum(agree)} of {len(agree)}", "planted_mistake_caught": caught, "within_limit": seconds <= LIMIT,
    }  # fmt: skip


LARGE, TILE, EXTRA = 2048, 64, 6


def sampled(scale: int = 1) -> dict[str, Any]:
    """A matrix product too large to be evaluated whole: its sampled programs against the reference's tiles."""
    n, across = LARGE, LARGE // TILE
    domain = Field(0)
    a, b = domain.random((n * n,)), domain.random((n * n,))
    ids = corners((across, across, 1), EXTRA)
    start, wall = time.process_time(), time.perf_counter()
    args = [launch.Arg(v, 0, torch.float16) for v in (a, b, domain.exact(torch.zeros(n * n)))]
    result = launch.run(kernels.matmul, (across, across), (*args, n, n, n, TILE, TILE, 32), domain=domain, programs=ids)
    mine = list(result.outputs.values())[2].p.reshape(n, n) * scale % domain_prime()
    calls = Calls(domain)
    equal = 0
    for i, j in ((p % across, p // across) for p in ids):
        rows, columns = (slice(k * TILE, (k + 1) * TILE) for k in (i, j))
        parts = [Value(v.map(lambda t, at=at: t.reshape(n, n)[at]), torch.float16) for v, at in
                 ((a, (rows, slice(None))), (b, (slice(None), columns)))]  # fmt: skip
        theirs = calls.call(aten.mm.default, parts, {}, (Expected((TILE, TILE), torch.float16),))[0].data
        equal += bool(torch.equal(mine[rows, columns], theirs.p))
    return {
        "problem": f"matmul {n}x{n}x{n}", "programs": f"{result.evaluated} of {result.programs}, the others not evaluated",
        "agree": f"{equal} of {len(ids)}", "seconds": round(time.process_time() - start, 3),
        "wall_seconds": round(time.perf_counter() - wall, 3),
    }  # fmt: skip


def main() -> None:
    torch.set_num_threads(1)
    ops.load()
    load = [round(x, 1) for x in os.getloadavg()]
    found = {name: measure(name) for name in OPERATORS}
    larger = sampled()
    evidence = {
        "limit_seconds": LIMIT, "machine": f"{platform.machine()}, {os.cpu_count()} cores, no GPU", "load_at_start": load,
        "python": platform.python_version(), "torch": torch.__version__, "triton": triton.__version__,
        "date": datetime.date.today().isoformat(), "operators": found, "sampled": larger,
    }  # fmt: skip
    EVIDENCE.write_text(json.dumps(evidence, indent=1) + "\n")
    for name, m in found.items():
        print(f"{name}: {m['seconds']} s (kernel {m['kernel_seconds']}, reference {m['reference_seconds']}), {m['agree']} agree, "
              f"{m['field_over_float64']} times float64")  # fmt: skip
    bad = [n for n, m in found.items() if not (m["within_limit"] and m["planted_mistake_caught"])
           or m["agree"] != f"{DRAWS * len(m['shapes'])} of {DRAWS * len(m['shapes'])}"]  # fmt: skip
    print(f"{larger['problem']}: {larger['programs']}, {larger['seconds']} s, {larger['agree']} agree")
    if larger["seconds"] > LIMIT or larger["agree"].split(" of ")[0] != larger["agree"].split(" of ")[1]:
        bad.append("the sampled product")
    if bad:
        raise SystemExit(f"too slow, or wrong: {', '.join(bad)}")


if __name__ == "__main__":
    main()
