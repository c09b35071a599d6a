"""Masked lanes, other dtypes, the contract's ``backward``, and shrinking under constraints: planted faults show, right
kernels are left alone."""

from __future__ import annotations

from pathlib import Path

import pytest
from trial import RIGHT, trial

from tilewright.prove.sizes import holds

LAUNCH = "def kernel(x):\n    return launch(x)\n"
NO_OTHER = RIGHT.replace(', other=-float("inf")', "")
HELD_BACK = NO_OTHER.replace("    e = tl.exp", '    x = tl.where(mask, x, -float("inf"))\n    e = tl.exp')
SOFTMAX = """
import torch
from tilewright.task import Contract, Dim, Task, TensorSpec
TASK = Task(
    reference=lambda x: torch.{name}(x, -1),
    inputs={{"x": TensorSpec("M N", requires_grad={grad})}}, outputs={{"y": TensorSpec("M N")}},
    dims={{"M": Dim(1, 64), "N": Dim(1, 64)}}, workloads=[{{"M": 6, "N": 12}}], contract=Contract({contract}),
)
"""
SUM_OF_SQUARES = """
import torch
import triton
import triton.language as tl

@triton.jit
def squares(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + tl.program_id(0) * n + cols, mask=cols < n{other})
    tl.store(y_ptr + tl.program_id(0), tl.sum(x * x, axis=0))

def kernel(x):
    x = x.contiguous()
    y = torch.empty(x.shape[0], dtype=x.dtype)
    squares[(x.shape[0],)](x, y, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
    return y
"""
SQUARES = SOFTMAX.format(name="softmax", grad=False, contract="")
SQUARES = SQUARES.replace("torch.softmax(x, -1)", "x.square().sum(-1)").replace(
    '{"y": TensorSpec("M N")}', '{"y": TensorSpec("M")}'
)


@pytest.mark.parametrize("strict", [False, True])
def test_masked_lanes_that_enter_a_sum(tmp_path: Path, strict: bool) -> None:
    """Right where those lanes are 0, as on NVIDIA."""
    got = trial(tmp_path, SUM_OF_SQUARES.format(other=""), "values", "masked lanes", task=SQUARES, strict=strict)
    report = got["masked lanes"]
    assert got["values"].status == "pass", "zeros add nothing"
    assert (report.status, report.role) == ("fail", "deciding" if strict else "advisory"), report
    assert report.findings[0].cls == "policy"
    assert "masked load without 'other' leaves undefined at candidate.py:9" in report.reason


@pytest.mark.parametrize(("kernel", "task"), [
    (SUM_OF_SQUARES.format(other=", other=0.0"), SQUARES),
    (HELD_BACK + LAUNCH, SOFTMAX.format(name="softmax", grad=False, contract="")),
])  # fmt: skip
def test_masked_lanes_that_are_filled_or_thrown_away(tmp_path: Path, kernel: str, task: str) -> None:
    report = trial(tmp_path, kernel, "masked lanes", task=task, strict=True)["masked lanes"]
    assert report.status == "pass", report
    assert report.cases


NARROW = "import torch\ndef kernel(x):\n    return torch.softmax(x.float(), -1){end}\n"
FUSSY = NARROW.format(end="").replace("    return", "    assert x.dtype is torch.float32, 'float32 only'\n    return")


@pytest.mark.parametrize(
    ("policy", "cls", "role"), [("promised", "wrong", "deciding"), ("advisory", "policy", "advisory")]
)
def test_other_dtypes_find_a_result_in_the_wrong_one(tmp_path: Path, policy: str, cls: str, role: str) -> None:
    task = SOFTMAX.format(name="softmax", grad=False, contract=f'other_dtypes="{policy}"')
    report = trial(tmp_path, NARROW.format(end=""), "other dtypes", task=task)["other dtypes"]
    assert (report.status, report.role) == ("fail", role), report
    assert report.findings[0].cls == cls
    assert "dtype of 'out' is torch.float32" in report.reason


def test_other_dtypes_leave_a_right_kernel_alone(tmp_path: Path) -> None:
    task = SOFTMAX.format(name="softmax", grad=False, contract='other_dtypes="promised"')
    kernel = "import torch\ndef kernel(x):\n    return torch.softmax(x, -1)\n"
    report = trial(tmp_path, kernel, "other dtypes", task=task)["other dtypes"]
    assert (report.status, report.cases) == ("pass", 3), "float16, bfloat16, float64"


def test_other_dtypes_take_a_clear_error_for_a_refusal_unless_they_are_promised(tmp_path: Path) -> None:
    task = SOFTMAX.format(name="softmax", grad=False, contract='other_dtypes="advisory"')
    shown = trial(tmp_path, FUSSY, "other dtypes", task=task)["other dtypes"]
    assert shown.status == "pass", shown
    assert "3 refused with a clear error" in shown.reason
    promised = trial(tmp_path, FUSSY, "other dtypes", task=task.replace("advisory", "promised"))
    assert promised["other dtypes"].status == "fail"


def test_other_dtypes_stand_back_where_the_contract_names_its_dtypes(tmp_path: Path) -> None:
    task = SOFTMAX.format(name="softmax", grad=False, contract="")
    report = trial(tmp_path, FUSSY, "other dtypes", task=task)["other dtypes"]
    assert (report.status, report.reason) == ("not applicable", "the contract names its dtypes")


BACKWARD = """
import torch
class Softmax(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = torch.softmax(x, -1)
        ctx.kept = y.clone()
        return y
    @staticmethod
    def backward(ctx, g):
        y = ctx.kept
        {line}
        return y * (g - (g * y).sum(-1, keepdim=True))
def kernel(x):
    return Softmax.apply(x)
"""
USES_UP = BACKWARD.format(line="ctx.kept = torch.zeros_like(y)")
OVERWRITES = BACKWARD.format(line="g = g.contiguous()").replace(
    "return y * (g - (g * y).sum(-1, keepdim=True))", "return g.copy_(y * (g - (g * y).sum(-1, keepdim=True)))"
)


@pytest.mark.parametrize(("kernel", "allowed"), [
    (BACKWARD.format(line="pass"), {"repeatable", "once", "in place"}),
    (USES_UP, {"once", "in place"}),
    (OVERWRITES, {"in place"}),
], ids=["right", "uses up", "overwrites"])  # fmt: skip
@pytest.mark.parametrize("backward", ["repeatable", "once", "in place"])
def test_what_a_backward_pass_may_do(tmp_path: Path, kernel: str, allowed: set[str], backward: str) -> None:
    task = SOFTMAX.format(name="softmax", grad=True, contract=f'gradients="promised", backward="{backward}"')
    report = trial(tmp_path, kernel, "gradients", task=task)["gradients"]
    assert report.status == ("pass" if backward in allowed else "fail"), report


GROUPED = """
import torch
from tilewright.task import Dim, Task, TensorSpec
TASK = Task(
    reference=lambda x: x * 2, inputs={"x": TensorSpec("M N")}, outputs={"y": TensorSpec("M N")},
    dims={"M": Dim(2, 64), "N": Dim(8, 512, multiple_of=4)}, constraints=("N % M == 0", "N >= 2 * M"),
    workloads=[{"M": 16, "N": 64}],
)
"""
WIDE = "import torch\ndef kernel(x):\n    y = x * 2\n    if x.shape[1] > 20:\n        y[:, -1] = 7\n    return y\n"


def test_shrinking_keeps_to_ranges_multiples_and_constraints(tmp_path: Path) -> None:
    """Wrong from N = 21 on: the smallest case lies within the contract's scope, not at N = 21."""
    finding = trial(tmp_path, WIDE, "values", task=GROUPED).finding
    dims = finding.case.dims
    assert dims["N"] % 4 == 0
    assert all(holds(c, dims) for c in ("N % M == 0", "N >= 2 * M"))
    assert dims == {"M": 2, "N": 24}, "and it is the smallest there"
