"""Each gate for a device passes a right kernel and finds a planted fault."""

from __future__ import annotations

from typing import Any

import pytest

TASK = """
import torch
from tilewright.task import Contract, Dim, Task, TensorSpec
TASK = Task(
    reference=lambda x: x * 2 + 1,
    inputs={"x": TensorSpec("M N")}, outputs={"y": TensorSpec("M N")},
    dims={"M": Dim(1, 1 << 17), "N": Dim(1, 1 << 17)}, workloads=[{"M": 64, "N": 100}],
    contract=Contract(layouts="promised"),
)
"""
TRITON = """
import torch
import triton
import triton.language as tl

@triton.jit
def double(x_ptr, y_ptr, M, N, sm, sn, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    for start in range(0, N, BLOCK):
        at = (start + cols).to(tl.int64)
        x = tl.load(x_ptr + row * sm + at * sn, mask=at < N)
        tl.store(y_ptr + row * N + at, x * 2 + 1, mask=at < N)

def kernel(x):
    y = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    double[(x.shape[0],)](x, y, x.shape[0], x.shape[1], x.stride(0), x.stride(1), BLOCK=128)
    return y
"""
DEVICE = ("streams", "graph replay", "load", "launch limits", "far offsets", "device agreement", "sanitizer")
FUNCTIONAL = ("interface", "values", "shapes", "written", "purity", "honesty", "determinism", "strides")


@pytest.mark.parametrize("names", [FUNCTIONAL, DEVICE], ids=["functional", "device"])
def test_a_right_kernel_passes(reports: Any, names: tuple[str, ...]) -> None:
    got = reports(TASK, TRITON, *names)
    assert {n: (r.status, r.reason) for n, r in got.items() if r.status != "pass"} == {}


OWN_STREAM = TRITON.replace(
    "    double[", "    stream = torch.cuda.Stream()\n    with torch.cuda.stream(stream):\n      double["
)
HOST_VALUE = TRITON.replace(
    "    return y", "    if not torch.cuda.is_current_stream_capturing():\n        STATE['first'] = x[0, 0].item()\n"
    "    y[0, 0].fill_(STATE['first'] * 2 + 1)\n    return y",
).replace("def kernel(x):", "STATE = {'first': 0.0}\n\ndef kernel(x):")  # fmt: skip
NARROW = TRITON.replace(".to(tl.int64)", "").replace("sm, sn, BLOCK", "sm: tl.int32, sn: tl.int32, BLOCK").replace(
    "row * sm", "(row * sm).to(tl.int32)")  # fmt: skip
SECOND_AXIS = TRITON.replace("tl.program_id(0)", "tl.program_id(1)").replace("(x.shape[0],)", "(1, x.shape[0])")
PAST_THE_END = TRITON.replace("x * 2 + 1, mask=at < N)", "x * 2 + 1, mask=at < N + (row == M - 1) * 4)")
FALLBACK = TRITON.replace("    double[", "    return x * 2 + 1\n    double[")
TORCH_BEHIND = TRITON.replace("    return y", "    return x * 2 + 1")
OVERWRITES = TRITON.replace("    return y", "    x[0, 0] = 5.0\n    return y")


@pytest.mark.parametrize(
    ("kernel", "name", "words"),
    [
        (OWN_STREAM, "streams", "behind a slow producer"),
        (HOST_VALUE, "graph replay", "replayed on other inputs"),
        (NARROW, "far offsets", "past 2^31"),
        (SECOND_AXIS, "launch limits", ""),
        (PAST_THE_END, "written", "past the end of"),
        (PAST_THE_END, "sanitizer", "invalid __global__ write"),
        (FALLBACK, "honesty", "no kernel is launched"),
        (TORCH_BEHIND, "honesty", "does not depend on any launch"),
        (OVERWRITES, "purity", "input 'x' is overwritten"),
    ],
    ids=["own stream", "host value", "narrow offsets", "second axis", "past the end", "past the end, tool", "fallback",
         "torch behind", "overwrites"],
)  # fmt: skip
def test_a_planted_fault_is_found(reports: Any, kernel: str, name: str, words: str) -> None:
    assert kernel != TRITON
    report = reports(TASK, kernel, name)[name]
    assert report.status == "fail", (report.status, report.reason, report.meaning)
    assert words in report.findings[0].summary


SUMS = """
import torch
from tilewright.task import Contract, Dim, Task, TensorSpec
TASK = Task(
    reference=lambda x: x.sum(),
    inputs={"x": TensorSpec("N")}, outputs={"y": TensorSpec("")},
    dims={"N": Dim(1, 1 << 22)}, workloads=[{"N": 1 << 20}],
)
"""
ATOMICS = """
import torch
import triton
import triton.language as tl

@triton.jit
def total(x_ptr, y_ptr, N, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(y_ptr, tl.sum(tl.load(x_ptr + at, mask=at < N, other=0.0)))

def kernel(x):
    y = torch.zeros((), dtype=x.dtype, device=x.device)
    total[(triton.cdiv(x.numel(), 256),)](x, y, x.numel(), BLOCK=256)
    return y
"""


def test_sums_in_order_of_arrival_differ_under_load(reports: Any) -> None:
    report = reports(SUMS, ATOMICS, "load")["load"]
    assert report.status == "fail", (report.status, report.reason)
    assert "differs in 1 of 1 elements" in report.findings[0].summary


TUNED = TRITON.replace(
    "@triton.jit\ndef double",
    "@triton.autotune([triton.Config({'BLOCK': 64}), triton.Config({'BLOCK': 128})], key=['N'])\n@triton.jit\ndef double",
).replace(", BLOCK=128)", ")")
ONE_IS_WRONG = TUNED.replace("x * 2 + 1, mask", "x * 2 + (1 if BLOCK == 64 else 2), mask")


@pytest.mark.parametrize(("kernel", "status"), [(TUNED, "pass"), (ONE_IS_WRONG, "fail")])
def test_each_configuration_is_judged_on_the_device(reports: Any, kernel: str, status: str) -> None:
    report = reports(TASK, kernel, "device configurations")["device configurations"]
    assert report.status == status, report.reason
    if status == "fail":
        assert report.findings[0].summary.startswith("with configuration 1:")
