"""Measurements whose numbers are made up, to see how a page shows them. Nothing here was measured."""

from __future__ import annotations

import random
from statistics import median
from typing import Any

from tilewright.measure.record import (
    Arm,
    Baseline,
    Ceilings,
    Figure,
    Floor,
    Interval,
    Measurement,
    Ratio,
    Transfer,
    WorkloadResult,
)

SPEEDS = {"candidate": 1.0, "twin": 1.0, "eager": 1.9, "compile": 1.22, "peer:liger": 1.31}


def interval(values: list[float], width: float = 0.01) -> Interval:
    mid = median(values)
    return Interval(low=mid * (1 - width), median=mid, high=mid * (1 + width), level=0.99)


def arm(name: str, seconds: float, rng: random.Random, blocks: int = 16, noise: float = 0.012) -> Arm:
    made = tuple(tuple(seconds * rng.lognormvariate(0, noise) + seconds * 0.03 * (rng.random() < 0.05) for _ in range(6))
                 for _ in range(blocks))  # fmt: skip
    flat = [s for b in made for s in b]
    return Arm(name=name, blocks=made, time=interval(flat, 0.004), checked=12, peak_bytes=3 << 26, extra_bytes=1 << 20)


def ratio(name: str, value: float, answer: str = "", width: float = 0.008, noise: float = 0.03) -> Ratio:
    said: Any = answer or ("faster" if value > 1 + noise else "slower" if value < 1 - noise else "no measurable gain")
    return Ratio(baseline=name, interval=interval([value], width), variation=0.011, answer=said)


def figure(
    base: float, rng: random.Random, speeds: dict[str, float], cache: str = "warm", launch: str = "plain"
) -> Figure:
    arms = tuple(arm(n, base * s, rng) for n, s in speeds.items())
    ratios = tuple(ratio(n, s) for n, s in speeds.items() if n not in ("candidate", "twin"))
    honest = min(ratios, key=lambda r: r.interval.median)
    return Figure(cache=cache, launch=launch, arms=arms, ratios=ratios,  # type: ignore[arg-type]
                  null=interval([1.0], 0.006), noise=0.03, honest=honest.baseline, answer=honest.answer, seconds=9.1,
                  stopped="target")  # fmt: skip


def workload(dims: dict[str, int], base: float, rng: random.Random, speeds: dict[str, float] | None = None,
             flops: int = 7) -> WorkloadResult:  # fmt: skip
    n = dims["M"] * dims["N"]
    speeds = speeds or SPEEDS
    states = ((1.0, "warm", "plain"), (1.4, "cold", "plain"), (0.9, "warm", "graph"))
    figures = tuple(figure(base * f, rng, speeds, c, k) for f, c, k in states)
    floor = Floor(seconds=base * 0.86, bytes=12 * n, flops=flops * n, bandwidth=12 * n / (base * 0.86), rate=6.7e13,
                  bound="memory", by="task", fraction=0.86)  # fmt: skip
    return WorkloadResult(name="w", dims=dims, dtype="float32", figures=figures, floor=floor, answer=figures[0].answer)


def faster(**changes: Any) -> Measurement:
    """Faster than everything at two workloads, slower at one."""
    rng = random.Random(7)
    shapes = [({"M": 8192, "N": 8192}, 1.9e-4, None), ({"M": 4096, "N": 1000}, 1.6e-5, None),
              ({"M": 128, "N": 100000}, 4e-5, {**SPEEDS, "compile": 0.93})]  # fmt: skip
    made = Measurement(
        answer="faster", kernel="examples/silu_mul/kernel.py", kernel_sha256="a1" * 32, language="triton", task="silu_mul",
        task_sha256="b2" * 32, contract="c3" * 32, verdict="0123456789ab", device="cuda", device_class="sm_90",
        protocol="d4" * 32, protocol_version="1", ratio=interval([1.214], 0.007), noise=0.03, variation=0.0113,
        baselines=(Baseline(name="eager", kind="eager", status="right", by="same gates"),
                   Baseline(name="compile", kind="compile", status="right", by="same gates", compile_s=4.2),
                   Baseline(name="peer:liger", kind="peer", status="right", by="same gates"),
                   Baseline(name="max-autotune", kind="max-autotune", status="unavailable", reason="no g++ on this machine"),
                   Baseline(name="fast.py", kind="file", status="wrong",
                            reason="values: 12 of 8192 elements beyond the budget at M=30 N=100")),
        workloads=tuple(workload(d, t, rng, s) for d, t, s in shapes),
        transfer=Transfer(shown=3, hidden=4, kept=3, rate=0.75, cause="tuned to the shown workloads", spent=4),
        ceilings=Ceilings(device="cuda", name="Made-up GPU", read={1 << 20: 9.1e12, 1 << 30: 4.4e12},
                          copy_={1 << 30: 4.25e12},
                          rates={"float32": 6.7e13, "bfloat16": 7.4e14}, launch=2.1e-6, cache_bytes=50 << 20,
                          method="streams and matmuls", measured="2026-11-30T12:00:00+00:00"),
        state={"clock": {"sm_mhz": [1980, 1975], "memory_mhz": 3201}, "power_w": 412.5, "temperature_c": 46,
               "throttle": "none", "driver": "580.1", "persistence": True},
        compile_s=1.1, versions={"torch": "2.11.0", "triton": "3.6.0"}, seconds=93.0, created="2026-11-30T12:00:00+00:00",
        id="fedcba987654",
    )  # fmt: skip
    return made.model_copy(update=changes)


def refused() -> Measurement:
    """Nothing was timed that counts."""
    good = faster()
    why = "outputs of 3 timed calls are wrong: call 17 of block 2 returned the answer of an earlier call"
    w = good.workloads[0].model_copy(update={"answer": "refused", "refusals": (why,), "reason": why, "figures": ()})
    return good.model_copy(update={"answer": "refused", "reason": why, "refusals": (why,), "ratio": None, "workloads": (w,),
                                   "variation": None, "transfer": None, "id": "", "kernel": "kernels/remembers.c",
                                   "device": "cpu", "ceilings": None})  # fmt: skip


def noisy(**changes: Any) -> Measurement:
    """Two workloads; at the first the ratio to the honest baseline varies too much, and A/A reaches far."""
    good = faster()
    first, second, _ = good.workloads
    f = first.figures[0]
    loud = tuple(r.model_copy(update={"answer": "too noisy", "variation": 0.091,
                                      "reason": "block ratios vary by 9.1%, above the cap of 5%"})
                 if r.baseline == f.honest else r for r in f.ratios)  # fmt: skip
    figure = f.model_copy(update={"ratios": loud, "answer": "too noisy", "null": interval([1.0], 0.12), "noise": 0.12})
    first = first.model_copy(update={"figures": (figure,), "answer": "too noisy", "reason": loud[0].reason})
    changed = {"answer": "too noisy", "variation": 0.091, "workloads": (first, second), "transfer": None, "noise": 0.12}
    return good.model_copy(update=changed | changes)


def even() -> Measurement:
    """A kernel against itself, one workload, no operations known."""
    rng = random.Random(3)
    w = workload({"M": 64, "N": 512}, 5.1e-6, rng, {"candidate": 1.0, "twin": 1.0, "right.c": 1.002}, flops=0)
    good = faster()
    return good.model_copy(update={"answer": "no measurable gain", "ratio": interval([1.002], 0.006), "workloads": (w,),
                                   "kernel": "examples/03_native/right.c", "task": "row_sum_of_squares", "device": "cpu",
                                   "baselines": (Baseline(name="right.c", kind="file", status="right"),),
                                   "transfer": None})  # fmt: skip
