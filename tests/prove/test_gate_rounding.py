"""Gate rounding: the ledger, and the dtype that sums are kept in."""

from __future__ import annotations

from pathlib import Path

import pytest
from trial import trial

from tilewright.prove.gates.rounding import narrower

TASK = """
import torch
from tilewright.task import Contract, Dim, Task, TensorSpec
TASK = Task(reference=lambda a, b: a @ b,
            inputs={"a": TensorSpec("M K", dtypes=("DTYPE",)), "b": TensorSpec("K N", dtypes=("DTYPE",))},
            outputs={"c": TensorSpec("M N", dtypes=("DTYPE",))}, dims={d: Dim(1, 64) for d in "MKN"},
            workloads=[{"M": 20, "K": 40, "N": 24}], contract=Contract(ACCUMULATE))
"""

MATMUL = """
import torch
import triton
import triton.language as tl

@triton.jit
def matmul(a_ptr, b_ptr, c_ptr, M, N, K, B: tl.constexpr):
    rows = tl.program_id(0) * B + tl.arange(0, B)
    cols = tl.program_id(1) * B + tl.arange(0, B)
    acc = tl.zeros((B, B), dtype=tl.float32)
    for start in range(0, K, B):
        k = start + tl.arange(0, B)
        a = tl.load(a_ptr + rows[:, None] * K + k[None, :], mask=(rows < M)[:, None] & (k < K)[None, :], other=0.0)
        b = tl.load(b_ptr + k[:, None] * N + cols[None, :], mask=(k < K)[:, None] & (cols < N)[None, :], other=0.0)
        SUM
    keep = (rows < M)[:, None] & (cols < N)[None, :]
    tl.store(c_ptr + rows[:, None] * N + cols[None, :], acc.to(c_ptr.dtype.element_ty), mask=keep)

def kernel(a, b):
    a, b = a.contiguous(), b.contiguous()
    c = torch.empty((a.shape[0], b.shape[1]), dtype=a.dtype)
    grid = (triton.cdiv(a.shape[0], 16), triton.cdiv(b.shape[1], 16))
    matmul[grid](a, b, c, a.shape[0], b.shape[1], a.shape[1], B=16)
    return c
"""


def run(folder: Path, add: str, dtype: str = "float16", accumulate: str = 'accumulate="float32"'):
    task = TASK.replace("DTYPE", dtype).replace("ACCUMULATE", accumulate)
    return trial(folder, MATMUL.replace("SUM", add), "rounding", task=task)


@pytest.mark.parametrize("add", ["acc += tl.dot(a, b, out_dtype=tl.float16)", "acc += tl.dot(a, b).to(tl.float16)"])
def test_a_sum_in_a_narrower_dtype_than_the_contract_states(tmp_path: Path, add: str) -> None:
    finding = run(tmp_path, add).finding
    assert (finding.cls, finding.where) == ("policy", "candidate.py:15")
    assert "adds in float16" in finding.summary
    assert "float32, as the contract states" in finding.expected


def test_a_sum_in_float32(tmp_path: Path) -> None:
    report = run(tmp_path, "acc = tl.dot(a, b, acc)")["rounding"]
    assert report.status == "pass"
    assert report.role == "deciding"
    assert report.claims[0].strength.startswith("sums in float32; float16 products at candidate.py:15")
    assert "float32 rounded to float16 at candidate.py:17" in report.claims[0].strength


def test_without_a_stated_dtype_nothing_is_decided(tmp_path: Path) -> None:
    report = run(tmp_path, "acc += tl.dot(a, b).to(tl.float16)", accumulate="")["rounding"]
    assert (report.status, report.role) == ("pass", "advisory")
    assert "float32 rounded to float16 at candidate.py:15" in report.meaning


def test_tf32_is_told(tmp_path: Path) -> None:
    report = run(tmp_path, "acc = tl.dot(a, b, acc)", "float32")["rounding"]
    assert "tf32 products at candidate.py:15, relative error up to 0.002" in report.meaning


def test_widths() -> None:
    assert narrower("f16", "float32")
    assert not narrower("f32", "float32")
    assert not narrower("f16", None)


def derived(folder: Path, add: str, dtype: str = "float16") -> str:
    claims = run(folder, add, dtype, accumulate="")["rounding"].claims
    return next((c.strength for c in claims if "derived error bound" in c.strength), "")


def test_a_bound_is_derived_and_set_beside_the_tolerance(tmp_path: Path) -> None:
    said = derived(tmp_path, "acc += tl.dot(a, b)")
    assert said.startswith("no order of roundings leaves the tolerance: derived error bound at most 0.")


def test_a_bound_above_the_tolerance_is_told_and_decides_nothing(tmp_path: Path) -> None:
    report = run(tmp_path, "acc += tl.dot(a, b).to(tl.float16)", accumulate="")["rounding"]
    assert (report.status, report.role) == ("pass", "advisory")
    said = report.claims[-1].strength
    assert "times the tolerance (the worst case of all roundings)" in said
    assert report.claims[-1].domain.endswith("to first order")


def test_a_bound_that_the_call_itself_breaks_is_not_claimed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tilewright.prove.gates import rounding

    monkeypatch.setattr(rounding, "SLACK", 1e-9)
    assert derived(tmp_path, "acc += tl.dot(a, b)") == ""
