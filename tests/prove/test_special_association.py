"""A formula of another association gives another kind of result on infinities; the contract says whether that counts."""

from __future__ import annotations

import pytest
from trial import trial

TASK = """
import torch
from tilewright.task import Contract, Dim, Task, TensorSpec
TASK = Task(
    reference=lambda x, w, b: torch.nn.functional.group_norm(x, 2, w, b),
    inputs={"x": TensorSpec("B 4 N"), "w": TensorSpec("4"), "b": TensorSpec("4")}, outputs={"y": TensorSpec("B 4 N")},
    dims={"B": Dim(1, 8), "N": Dim(2, 64)}, workloads=[{"B": 2, "N": 12}],
    contract=Contract(special_values="promised", nan="POLICY"),
)
"""
TEXTBOOK = """
import torch
def kernel(x, w, b):
    g = x.reshape(x.shape[0], 2, -1)
    centred = g - g.mean(-1, keepdim=True)
    normal = centred * torch.rsqrt(centred.square().mean(-1, keepdim=True) + 1e-5)
    return normal.reshape(x.shape) * w[:, None] + b[:, None]
"""


def test_the_letter_of_the_contract_rejects(tmp_path):
    """PyTorch folds mean and weight into one shift: with an infinite weight that is Inf - Inf."""
    task = TASK.replace("POLICY", "propagate")
    finding = trial(tmp_path, TEXTBOOK, "values", "special values", task=task).finding
    assert finding.gate == "special values"
    assert (finding.expected, "inf" in finding.got) == ("nan", True), finding


@pytest.mark.parametrize(
    ("kernel", "status"), [(TEXTBOOK, "pass"), (TEXTBOOK.replace("* w[", "* w.nan_to_num(posinf=1.0)["), "fail")]
)
def test_a_contract_that_ignores_nan_takes_either(tmp_path, kernel, status):
    """But not what is finite where PyTorch gives an infinity, or the other way round."""
    task = TASK.replace("POLICY", "ignore").replace("torch.nn.functional.group_norm(x, 2, w, b)", REFERENCE[status])
    assert trial(tmp_path, kernel, "special values", task=task)["special values"].status == status


REFERENCE = {"pass": "torch.nn.functional.group_norm(x, 2, w, b)",
             "fail": "torch.nn.functional.group_norm(x, 2) * w[:, None] + b[:, None]"}  # fmt: skip
