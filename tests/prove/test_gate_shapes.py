"""Gate shapes: what it says it tried."""

from __future__ import annotations

import re
from pathlib import Path

from trial import trial

from tilewright.kernel import read
from tilewright.prove.examination import Examination
from tilewright.prove.examine import domain, open_task
from tilewright.prove.gates import gate
from tilewright.report.terminal import domain as words

TASK = """
import torch
from tilewright.task import Dim, Task, TensorSpec
TASK = Task(reference=lambda x: torch.relu(x), inputs={"x": TensorSpec("M N")}, outputs={"y": TensorSpec("M N")},
            dims={"M": Dim(1, 1 << 40), "N": Dim(1, 64)}, workloads=[{"M": 8, "N": 64}])
"""
KERNEL = "import torch\ndef kernel(x):\n    return torch.relu(x)\n"


def test_the_claim_names_the_largest_size_tried_not_the_one_promised(tmp_path: Path) -> None:
    (claim,) = trial(tmp_path, KERNEL, "shapes", task=TASK)["shapes"].claims
    tried = re.fullmatch(r"tried up to M=(\d+), N=(\d+)", claim.domain)
    assert tried is not None, claim
    assert 64 < int(tried[1]) < 1 << 21
    assert int(tried[2]) <= 64


def test_the_domain_says_how_far_it_was_tried(tmp_path: Path) -> None:
    (tmp_path / "problem.py").write_text(TASK)
    (tmp_path / "kernel.py").write_text(KERNEL)
    sheet, reference = open_task(str(tmp_path / "problem.py"))
    exam = Examination(sheet, read(str(tmp_path / "kernel.py")), reference, seed=7)
    try:
        assert domain(exam)["tried"] == {"M": 8, "N": 64}, "the given workload, before other sizes"
        gate("shapes").run(exam)
        held = domain(exam)
    finally:
        exam.close()
        reference.close()
    assert held["dims"] == {"M": [1, 1 << 40], "N": [1, 64]}
    assert held["tried"]["M"] > 64
    assert f"M 1..{1 << 40} (tried up to {held['tried']['M']}), N 1..64;" in words(held)


LOSS = """
import torch
from tilewright.task import Dim, Task, TensorSpec
TASK = Task(reference=lambda x: x.sum(-1), inputs={"x": TensorSpec("M N")}, outputs={"y": TensorSpec("M")},
            dims={"M": Dim(1, 1 << 16), "N": Dim(1, 1 << 16)}, workloads=[{"M": 16, "N": 2048}])
"""
BLOCKS = """
import torch
BLOCK = 256
def kernel(x):
    n = x.shape[-1]
    y = torch.zeros(x.shape[0], dtype=torch.float64)
    for start in range(0, max(n - 1, 1), BLOCK):
        y += x[:, start : start + BLOCK].double().sum(-1)
    return y.to(x.dtype)
"""


def test_one_more_than_a_block_of_the_source_is_always_tried(tmp_path: Path) -> None:
    """Wrong only where one element is left over after whole blocks: N = 257, 513, …"""
    finding = trial(tmp_path, BLOCKS, "shapes", task=LOSS).finding
    assert "N=257" in finding.summary
