"""The fork server fetches torch's compiler when there is time, and only if more than one problem is opened."""

from __future__ import annotations

import subprocess
import sys

import pytest

WATCHED = """
import sys, torch
import tilewright.prove.child.worker
from tilewright.prove.child.watch import Watch
assert "torch._dynamo" not in sys.modules, "imported before it is needed"
with Watch(observe=True) as first:
    torch.ones(3) + 1
assert "torch._dynamo" not in sys.modules, "imported by a dispatch mode"
import torch._dynamo
with Watch(observe=True) as second:
    torch.ones(3) + 1
assert first.ops == second.ops == {"aten.ones.default": 1, "aten.add.Tensor": 1}, (first.ops, second.ops)
compiled = torch.compile(lambda x: x + 1, backend="eager")
with Watch(observe=True) as third:
    compiled(torch.ones(3))
assert third.ops["aten.add.Tensor"] == 1, third.ops
"""

LATER = """
import sys
from tilewright.prove.child import preload
opened = 1
pieces = preload.later(lambda: opened > 1)
for _ in range(9):
    next(pieces)
assert "torch._dynamo" not in sys.modules
opened = 2
assert sum(1 for _ in pieces) == len(preload.LATER)
assert "torch._dynamo" in sys.modules
"""


@pytest.mark.parametrize("script", [WATCHED, LATER], ids=["watched", "later"])
def test_in_a_process_of_its_own(script):
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
