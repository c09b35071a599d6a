"""Gate configurations: each configuration of a tuner, and the first call."""

from __future__ import annotations

from pathlib import Path

from trial import RIGHT as BASE
from trial import trial

from tilewright.prove.gates.configurations import distinct

SUM = """
import torch
from tilewright.task import Contract, Dim, Task, TensorSpec
TASK = Task(reference=lambda x: x.sum(0), inputs={"x": TensorSpec("M N")}, outputs={"y": TensorSpec("N")},
            dims={"M": Dim(1, 64), "N": Dim(1, 64)}, workloads=[{"M": 40, "N": 12}],
            contract=Contract(determinism="none"))
"""

TUNED = """
import torch
import triton
import triton.language as tl

@triton.autotune(configs=[triton.Config({"BM": 8}), triton.Config({"BM": 16}), triton.Config({"BM": 16}, num_warps=8)],
                 key=["M"]RESET)
@triton.jit
def add_rows(x_ptr, y_ptr, M, N, BM: tl.constexpr, BN: tl.constexpr):
    rows = tl.program_id(0) * STEP + tl.arange(0, BM)
    cols = tl.arange(0, BN)
    keep = (rows < M)[:, None] & (cols < N)[None, :]
    x = tl.load(x_ptr + rows[:, None] * N + cols[None, :], mask=keep, other=0.0)
    tl.atomic_add(y_ptr + cols, tl.sum(x, axis=0), mask=cols < N)

def kernel(x):
    x = x.contiguous()
    y = torch.zeros(x.shape[1], dtype=x.dtype, device=x.device)
    grid = lambda meta: (triton.cdiv(x.shape[0], meta["BM"]),)
    add_rows[grid](x, y, x.shape[0], x.shape[1], BN=triton.next_power_of_2(x.shape[1]))
    return y
"""


def tuned(reset: str = ', reset_to_zero=["y_ptr"]', step: str = "BM") -> str:
    return TUNED.replace("RESET", reset).replace("STEP", step)


def test_a_tuner_that_adds_up_its_trials(tmp_path: Path) -> None:
    result = trial(tmp_path, tuned(reset=""), "values", "configurations", task=SUM)
    assert result["values"].status == "pass", "later calls are right"
    assert "on a first call" in result.finding.summary
    assert "reset_to_zero" in result.finding.detail


def test_one_configuration_is_wrong(tmp_path: Path) -> None:
    result = trial(tmp_path, tuned(step="8"), "values", "configurations", task=SUM)
    assert result["values"].status == "pass", "the first configuration is right"
    assert result.finding.summary.startswith("with configuration 1: ")
    assert "BM: 16" in result.finding.detail


def test_a_right_tuned_kernel(tmp_path: Path) -> None:
    report = trial(tmp_path, tuned(), "configurations", task=SUM)["configurations"]
    assert report.status == "pass", report.reason
    assert report.meaning == "3 configurations (2 that differ in code), first call with tuning"
    assert "all 3 configurations" in report.claims[0].domain


def test_not_for_kernels_without_a_tuner(tmp_path: Path) -> None:
    report = trial(tmp_path, BASE + "\nkernel = launch\n", "configurations")["configurations"]
    assert (report.status, report.reason) == ("not applicable", "no kernel is tuned")


def test_configurations_of_two_functions_turn_together() -> None:
    assert distinct({"a": [["", "1"], ["", "2"], ["", "1"]], "b": [["", "x"]]}) == [0, 1]
    assert distinct({}) == []
