"""Interface: its findings carry the smallest case that shows the same fault."""

from __future__ import annotations

import pytest
from trial import trial

TASK = """
import torch
from tilewright.task import Dim, Task, TensorSpec
TASK = Task(
    reference=lambda x: x * 2, inputs={"x": TensorSpec("M N")}, outputs={"y": TensorSpec("M N")},
    dims={"M": Dim(1, 64), "N": Dim(1, 64)}, workloads=[{"M": 24, "N": 40}],
)
"""


@pytest.mark.parametrize(("body", "words", "dims"), [
    ("return (x * 2).double()", "dtype of 'out' is torch.float64", {"M": 1, "N": 1}),
    ("return (x * 2).double() if x.shape[1] > 9 else x * 2", "dtype of 'out' is torch.float64", {"M": 1, "N": 10}),
    ("return (x * 2)[:, :7]", "shape of 'out' is (1, 7), expected (1, 8)", {"M": 1, "N": 8}),
    ("raise ValueError(f'{len(x)} rows are too many')", "raises: ValueError", {"M": 1, "N": 1}),
])  # fmt: skip
def test_the_smallest_case(tmp_path, body, words, dims):
    finding = trial(tmp_path, f"def kernel(x):\n    {body}\n", "interface", task=TASK).finding
    assert (finding.gate, finding.case.dims) == ("interface", dims)
    assert words in finding.summary
    assert finding.replays


def test_values_get_simple_too(tmp_path):
    finding = trial(tmp_path, "def kernel(x):\n    return (x * 2).double()\n", "interface", task=TASK).finding
    assert finding.case.options["changed"], finding.case


def test_a_wrong_dtype_stays_one(tmp_path):
    """At small sizes this kernel raises: another fault, which is of the same class."""
    body = "if len(x) < 5:\n        raise ValueError('too few rows')\n    return (x * 2).double()"
    finding = trial(tmp_path, f"def kernel(x):\n    {body}\n", "interface", task=TASK).finding
    assert "dtype of 'out' is torch.float64" in finding.summary
    assert finding.case.dims == {"M": 5, "N": 1}


def test_a_file_that_does_not_load_is_told_as_before(tmp_path):
    finding = trial(
        tmp_path, "import no_such_module\ndef kernel(x):\n    return x * 2\n", "interface", task=TASK
    ).finding
    assert "no_such_module" in finding.summary
