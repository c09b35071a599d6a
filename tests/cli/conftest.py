"""Small problems and kernels in torch, which need no compiler and take a second each."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

PROBLEM = """
import torch
from tilewright.task import Dim, Task, TensorSpec

def reference(x):
    return torch.relu(x) * 2

TASK = Task(name="double_relu", reference=reference, inputs={"x": TensorSpec("M N")}, outputs={"y": TensorSpec("M N")},
            dims={"M": Dim(1, 512), "N": Dim(1, 512)}, workloads=[{"M": 16, "N": 16}])
"""
RIGHT = (
    "import torch\n\ndef kernel(x):\n"
    + "    return torch.where(x > 0, x + x, torch.where(x.isnan(), x, torch.zeros_like(x)))\n"
)
WRONG = """import torch

def kernel(x):
    y = torch.relu(x) * 2
    if x.shape[-1] % 16:
        y[..., -1] = 0
    return y
"""

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A problem with a right and a wrong kernel."""
    (tmp_path / "problem.py").write_text(PROBLEM)
    (tmp_path / "right.py").write_text(RIGHT)
    (tmp_path / "wrong.py").write_text(WRONG)
    return tmp_path


@pytest.fixture
def tilewright(tmp_path: Path) -> Run:
    """Run the command line in a process of its own, with a ledger of its own."""

    def run(*arguments: object, **options: object) -> subprocess.CompletedProcess[str]:
        env = {
            **os.environ,
            "TILEWRIGHT_LEDGER": str(tmp_path / "ledger.sqlite"),
            "COLUMNS": "160",
            **options.pop("env", {}),
        }  # type: ignore[arg-type]
        return subprocess.run(
            [sys.executable, "-m", "tilewright", *map(str, arguments)],
            capture_output=True,
            text=True,
            env=env,
            cwd=tmp_path,
            timeout=300,
            **options,
        )  # type: ignore[call-overload]

    return run
