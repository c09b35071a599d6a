"""Finite numbers that stand in for minus infinity: found where rows lie below them, and right kernels are left alone."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from trial import trial

from tilewright.task.tensors import TensorSpec
from tilewright.task.values import FAMILIES, generator

SOFTMAX = """
import torch
from tilewright.task import Dim, Task, TensorSpec
TASK = Task(
    reference=lambda x: torch.softmax(x, -1),
    inputs={"x": TensorSpec("M N", dtypes=("DTYPE",))}, outputs={"y": TensorSpec("M N")},
    dims={"M": Dim(1, 512), "N": Dim(1, 512)}, workloads=[{"M": 8, "N": 64}],
)
"""
PADDED = """
import torch
def kernel(x):
    n = x.shape[-1]
    pad = torch.full((x.shape[0], -n % 32), FILL)
    e = torch.cat([x.float(), pad], -1)
    e = (e - e.amax(-1, keepdim=True)).exp()
    return (e / e.sum(-1, keepdim=True))[:, :n].to(x.dtype)
"""
ATTENTION = """
import torch
from tilewright.task import Dim, Task, TensorSpec
def reference(q, k, v):
    scores = (q @ k.mT) * q.shape[-1] ** -0.5
    hidden = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
    return torch.softmax(scores.masked_fill(hidden, -torch.inf), -1) @ v
TASK = Task(
    reference=reference, inputs={n: TensorSpec("B T D") for n in "qkv"}, outputs={"o": TensorSpec("B T D")},
    dims={"B": Dim(1, 16), "T": Dim(1, 512), "D": Dim(1, 128)}, workloads=[{"B": 2, "T": 32, "D": 16}],
)
"""
CAUSAL = """
import torch
def kernel(q, k, v):
    scores = (q @ k.mT) * q.shape[-1] ** -0.5
    hidden = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
    return torch.softmax(scores.masked_fill(hidden, FILL), -1) @ v
"""
POOL = """
import torch
from tilewright.task import Dim, Task, TensorSpec
TASK = Task(
    reference=lambda x: torch.nn.functional.max_pool1d(x, 3, stride=2, padding=1),
    inputs={"x": TensorSpec("B T")}, outputs={"y": TensorSpec(("B", "(T - 1) // 2 + 1"))},
    dims={"B": Dim(1, 64), "T": Dim(2, 512)}, workloads=[{"B": 4, "T": 33}],
)
"""
WINDOWS = """
import torch
def kernel(x):
    return torch.nn.functional.pad(x, (1, 1), value=FILL).unfold(-1, 3, 2).amax(-1)
"""


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
@pytest.mark.parametrize("fill", ["-1e4", "-1e9", "-1e30"])
def test_softmax_padded_with_a_finite_number(tmp_path: Path, fill: str, dtype: str) -> None:
    if dtype == "float16" and fill != "-1e4":
        pytest.skip("float16 holds nothing below -65504")
    got = trial(tmp_path, PADDED.replace("FILL", fill), "values", "shapes", task=SOFTMAX.replace("DTYPE", dtype))
    assert got.failed is not None


@pytest.mark.parametrize("fill", ["-1e4", "-1e9"])
def test_attention_masked_with_a_finite_number(tmp_path: Path, fill: str) -> None:
    got = trial(tmp_path, CAUSAL.replace("FILL", fill), "values", "shapes", task=ATTENTION)
    assert got.failed is not None


@pytest.mark.parametrize("fill", ["-1e4", "-1e9", "-1e30"])
def test_pooling_padded_with_a_finite_number(tmp_path: Path, fill: str) -> None:
    got = trial(tmp_path, WINDOWS.replace("FILL", fill), "values", "shapes", task=POOL)
    assert got.failed is not None


@pytest.mark.parametrize(("task", "kernel"), [(SOFTMAX.replace("DTYPE", "float32"), PADDED), (ATTENTION, CAUSAL),
                                              (SOFTMAX.replace("DTYPE", "float16"), PADDED), (POOL, WINDOWS)])  # fmt: skip
def test_minus_infinity_is_right(tmp_path: Path, task: str, kernel: str) -> None:
    got = trial(tmp_path, kernel.replace("FILL", "-torch.inf"), "values", "shapes", task=task)
    assert [r.status for r in got.reports] == ["pass", "pass"], got.reports


def test_cases_beyond_the_reference_s_own_range_say_nothing(tmp_path: Path) -> None:
    """The reference overflows in float32; a kernel that scales first does not, and is no worse for it."""
    task = SOFTMAX.replace("DTYPE", "float32").replace("torch.softmax(x, -1)", "x / x.square().sum(-1, True).sqrt()")
    scaled = "def kernel(x):\n    s = x / x.abs().amax(-1, True)\n    return s / s.square().sum(-1, True).sqrt()\n"
    got = trial(tmp_path, scaled, "values", task=task)
    assert got["values"].status == "pass", got.reports


def test_deep_rows_leave_others_normal() -> None:
    spec = TensorSpec("M N")
    x = FAMILIES["deep_rows"](spec, (64, 10), "float32", generator(3), {})
    deep = (x < -1e30).all(-1)
    assert 0 < int(deep.sum()) < 64
    assert (x[~deep].abs() < 10).all()
    assert (FAMILIES["deep"](spec, (64, 10), "float32", generator(3), {}) < -1e10).all()


def test_opposed_products_are_far_below_any_mask() -> None:
    spec = TensorSpec("M N")
    drawn = [FAMILIES["opposed"](spec, (16, 8), "float32", generator(i), {}) for i in range(12)]
    signs = {float(x.sign().unique().item()) for x in drawn}
    assert signs == {-1.0, 1.0}
    up, down = (next(x for x in drawn if x[0, 0] * s > 0) for s in (1, -1))
    assert ((up @ down.mT) < -1e9).all()
    assert torch.equal((up @ down.mT).double(), up.double() @ down.double().mT), "exact"


def test_nor_do_cases_where_it_leaves_that_range_on_its_way(tmp_path: Path) -> None:
    """In float32 the variance is infinite and the reference gives zeros; a one-pass kernel gives NaN there."""
    task = SOFTMAX.replace("DTYPE", "float32").replace(
        "torch.softmax(x, -1)", "torch.nn.functional.layer_norm(x, x.shape[-1:])"
    )
    kernel = """
import torch
def kernel(x):
    d = x - x.mean(-1, keepdim=True)
    v = d.square().mean(-1, keepdim=True)
    return torch.where(v > 1e30, torch.nan, d / (v + 1e-5).sqrt())
"""
    assert trial(tmp_path, kernel, "values", task=task)["values"].status == "pass"


def test_one_element_of_a_deep_row_stands_out() -> None:
    x = FAMILIES["deep"](TensorSpec("M N"), (64, 200), "bfloat16", generator(3), {}).double()
    assert ((x == x.amax(-1, keepdim=True)).sum(-1) == 1).all()
    assert (x.sort(-1, descending=True).values[:, 0] > 0.9 * x.sort(-1, descending=True).values[:, 1]).all()
