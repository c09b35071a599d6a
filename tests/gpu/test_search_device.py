"""A search on a GPU: Triton kernels are checked and timed there, and the last word is said on hidden workloads."""

from __future__ import annotations

from pathlib import Path

from tilewright.cli import run as command
from tilewright.ledger import Ledger
from tilewright.search import store

TASK = """
from tilewright.task import Contract, Dim, Task, TensorSpec, Work
TASK = Task(
    reference=lambda x: x * 2 + 1,
    inputs={"x": TensorSpec("M N")}, outputs={"y": TensorSpec("M N")},
    dims={"M": Dim(1, 1 << 14), "N": Dim(1, 1 << 14)}, workloads=[{"M": 1024, "N": 4096}],
    contract=Contract(layouts="excluded"), work=Work(bytes="2*M*N*itemsize", flops="2*M*N"),
)
"""
KERNEL = """
import torch
import triton
import triton.language as tl

WIDTH = 32  # knob: 32 1024 4096

@triton.jit
def double(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n)
    tl.store(y_ptr + at, x * 2 + 1, mask=at < n)

def kernel(x):
    y = torch.empty_like(x)
    if x.numel():
        double[(triton.cdiv(x.numel(), WIDTH),)](x, y, x.numel(), BLOCK=WIDTH)
    return y
"""


def test_wider_blocks_are_found_and_proved_to_be_faster(tmp_path: Path) -> None:
    (tmp_path / "problem.py").write_text(TASK)
    (tmp_path / "kernel.py").write_text(KERNEL)
    code = command(["search", str(tmp_path / "problem.py"), str(tmp_path / "kernel.py"), "--budget", "2trials", "--device",
                    "cuda", "--ledger", str(tmp_path / "l.sqlite"), "--gate-seconds", "3", "-q"])  # fmt: skip
    assert code == 0
    book = Ledger.open(str(tmp_path / "l.sqlite"))
    (record,) = store.runs(book)
    tree = store.tree_of(book, record.id)
    assert all(n.accepted for n in tree), [n.failure for n in tree]
    assert record.ended is not None
    assert record.ended["answer"] == "faster", record.ended["reason"]
    assert tree[record.ended["node"]].proposal.parameters["WIDTH"] > 32
    assert record.ended["cost"]["gpu_seconds"] > 0
