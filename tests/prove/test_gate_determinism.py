"""Determinism and batch invariance: what depends on order, process or neighbours is found; what doesn't passes."""

from __future__ import annotations

import pytest
from trial import RIGHT, SOFTMAX, trial

SUM = """
import torch
from tilewright.task import Contract, Dim, Task, TensorSpec
TASK = Task(
    reference=lambda x: x.sum(0),
    inputs={"x": TensorSpec("M N")}, dims={"M": Dim(1, 256), "N": Dim(1, 64)}, workloads=[{"M": 64, "N": 8}],
    contract=Contract(determinism="bitwise"),
)
"""
ATOMIC = """
import torch
import triton
import triton.language as tl

@triton.jit
def add_rows(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + tl.program_id(0) * n + i, mask=i < n)
    tl.atomic_add(y_ptr + i, x, mask=i < n)

def kernel(x):
    y = torch.zeros(x.shape[1], dtype=x.dtype, device=x.device)
    add_rows[(x.shape[0],)](x, y, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
    return y
"""


def test_atomics_in_another_order(tmp_path):
    finding = trial(tmp_path, ATOMIC, "determinism", task=SUM).finding
    assert finding.cls == "policy"
    assert "programs of each launch in another order" in finding.summary


def test_atomics_where_the_contract_lets_them(tmp_path):
    report = trial(tmp_path, ATOMIC, "determinism", task=SUM.replace('"bitwise"', '"none"'))
    assert report["determinism"].role == "advisory"


FAULTS = {
    "differs between calls": (
        "n = 0\ndef kernel(x):\n    global n\n    n += 1\n    return launch(x) * (1 + 2**-22 * (n % 2))",
        "called again",
    ),
    "differs between processes": (
        "import os\nn = os.urandom(1)[0]\ndef kernel(x):\n    return launch(x) * (1 + 2**-22 * n)",
        "fresh process",
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_determinism_sees(name, tmp_path):
    text, words = FAULTS[name]
    result = trial(tmp_path, RIGHT + text + "\n", "determinism")
    assert result["determinism"].status == "fail"
    assert words in result["determinism"].reason


def test_determinism_and_invariance_pass_a_right_kernel(tmp_path):
    result = trial(tmp_path, RIGHT + "def kernel(x):\n    return launch(x)\n", "determinism", "batch invariance")
    assert [r.status for r in result.reports] == ["pass", "pass"]


def test_a_row_that_feels_its_neighbours(tmp_path):
    text = RIGHT + "def kernel(x):\n    y = launch(x)\n    return y * (1 + 2**-22) if x.shape[0] > 1 else y\n"
    finding = trial(tmp_path, text, "batch invariance").finding
    assert finding.cls == "policy"
    assert "row 0 alone differs from row 0 in the batch of" in finding.summary


def test_invariance_is_not_applicable_without_a_promise(tmp_path):
    task = SOFTMAX.replace('batch_invariant=("M",)', "")
    report = trial(tmp_path, RIGHT + "def kernel(x):\n    return launch(x)\n", "batch invariance", task=task).reports[0]
    assert (report.status, report.reason) == ("not applicable", "the contract names no batch dim")
