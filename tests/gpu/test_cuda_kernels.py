"""CUDA C++ on a device: the examples, and faults that only a device shows."""

from __future__ import annotations

from pathlib import Path

import pytest

from tilewright.prove.examine import check

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "06_cuda_softmax"
PROBLEM = str(FOLDER / "problem.py")


@pytest.mark.parametrize("name", ["right.cu", "right_inline.py"])
def test_right_kernels_are_accepted(name: str) -> None:
    verdict, _ = check(PROBLEM, str(FOLDER / name), device="cuda", gate_seconds=6.0)
    assert verdict.verdict == "accept", (verdict.reason, [(g.name, g.status, g.reason) for g in verdict.gates])
    assert verdict.device == "sm_90"
    assert any(c.kind == "device" for c in verdict.claims)


@pytest.mark.parametrize("name", ["wrong_tail.cu", "wrong_barrier.cu", "wrong_compile.cu"])
def test_wrong_kernels_are_rejected(name: str) -> None:
    verdict, _ = check(PROBLEM, str(FOLDER / name), device="cuda", gate_seconds=6.0)
    assert verdict.verdict == "reject", (verdict.reason, [(g.name, g.status, g.reason) for g in verdict.gates])


SILENT = r"""
import torch
from torch.utils.cpp_extension import load_inline

SOURCE = r'''
#include <torch/extension.h>
__global__ void copy(const float *x, float *y, long long n)
{
    long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] * 2.0f;
}
torch::Tensor run(torch::Tensor x)
{
    auto y = torch::zeros_like(x);
    copy<<<1, x.numel()>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.numel());
    return y;
}
'''
module = load_inline("silent", "torch::Tensor run(torch::Tensor x);", SOURCE, functions=["run"])


def kernel(x):
    return module.run(x.contiguous())
"""
DOUBLE = """
from tilewright.task import Contract, Dim, Task, TensorSpec
TASK = Task(reference=lambda x: x * 2, inputs={"x": TensorSpec("N")}, outputs={"y": TensorSpec("N")},
            dims={"N": Dim(1, 1 << 20)}, workloads=[{"N": 4096}])
"""


def test_a_launch_that_fails_silently_is_found(reports) -> None:  # type: ignore[no-untyped-def]
    report = reports(DOUBLE, SILENT, "launch limits")["launch limits"]
    assert report.status == "fail"
    assert "a launch fails and the call returns as if nothing had happened: invalid" in report.findings[0].summary


FALLBACK = SILENT.replace(
    "    return module.run(x.contiguous())", "    module.run(x[:1].contiguous())\n    return x * 2"
)


def test_an_extension_for_show_is_found(reports) -> None:  # type: ignore[no-untyped-def]
    report = reports(DOUBLE, FALLBACK, "interface", "honesty")["honesty"]  # compiled by the first
    assert report.status == "fail", (report.status, report.reason, report.meaning)
    assert "does not depend on any launch" in report.findings[0].summary


COMPILED = """
import torch

SOURCE = 'extern "C" __global__ void twice(const float *x, float *y, int n) {' \\
    ' int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) y[i] = 2 * x[i]; }'
twice = torch.cuda._compile_kernel(SOURCE, "twice")


def kernel(x):
    x = x.contiguous()
    y = torch.empty_like(x)
    if x.numel():
        twice(((x.numel() + 255) // 256, 1, 1), (256, 1, 1), (x, y, x.numel()))
    return y
"""


def test_a_string_for_nvrtc_runs(reports) -> None:  # type: ignore[no-untyped-def]
    got = reports(DOUBLE, COMPILED, "interface", "values", "written", "streams")
    assert {n: (r.status, r.reason) for n, r in got.items() if r.status != "pass"} == {}
