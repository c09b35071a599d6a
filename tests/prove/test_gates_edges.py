"""Values exactly at a float argument."""

from __future__ import annotations

from pathlib import Path

import pytest
from trial import rejects, trial

SHRINK = """
import torch
from tilewright.task import Contract, Dim, Scalar, Task, TensorSpec

def reference(x, bound):
    return torch.nn.functional.hardshrink(x, bound)

TASK = Task(reference=reference, inputs={"x": TensorSpec("N"), "bound": Scalar(0.5)}, dims={"N": Dim(1, 4096)},
            workloads=[{"N": 100}], contract=Contract(identifier="hardshrink"))
"""
KERNEL = """
import torch

def kernel(x, bound):
    return torch.where(x.abs() {sign} bound, torch.zeros_like(x), x)
"""


@pytest.mark.parametrize(("sign", "wrong"), [("<=", False), ("<", True)])
def test_values_at_a_float_argument(tmp_path: Path, sign: str, wrong: bool) -> None:
    (report,) = trial(tmp_path, KERNEL.format(sign=sign), "values", task=SHRINK).reports
    assert rejects(report) is wrong, report
