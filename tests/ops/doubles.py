"""gradcheck in float64 of an entry of a kernel file, under Triton's interpreter: ``doubles.py NAME ENTRY SIZES SCALARS``."""

import importlib
import json
import os
import subprocess
import sys
from importlib.metadata import version
from typing import Any

import pytest


def check(name: str, entry: str, sizes: list[list[int]], *scalars: Any) -> None:
    """Run this file in a process of its own, since Triton reads the variable when it is imported."""
    if version("triton") < "3.7":
        pytest.skip("the interpreter of this Triton fails with a current NumPy")
    done = subprocess.run([sys.executable, __file__, name, entry, json.dumps(sizes), json.dumps(scalars)],
                          env={**os.environ, "TRITON_INTERPRET": "1"}, capture_output=True, text=True, timeout=300,
                          check=False)  # fmt: skip
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-3000:]


def run(name: str, entry: str, sizes: list[list[int]], scalars: list[Any]) -> None:
    import torch

    torch.manual_seed(7)
    function = getattr(importlib.import_module(f"tilewright.ops.{name}.kernel"), entry)
    given = [torch.randn(s, dtype=torch.float64, requires_grad=True) for s in sizes]
    assert torch.autograd.gradcheck(lambda *t: function(*t, *scalars), given, eps=1e-6, atol=1e-7, rtol=1e-6)


if __name__ == "__main__":
    run(sys.argv[1], sys.argv[2], json.loads(sys.argv[3]), json.loads(sys.argv[4]))
