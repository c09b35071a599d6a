"""Largest value of each column of an integer matrix: exact in any order, so that no order of programs shows a lost one."""

import torch

from tilewright.task import Contract, Dim, Task, TensorSpec, integers


def reference(x):
    return x.amax(0).to(torch.int32)


TASK = Task(
    name="column peaks",
    reference=reference,
    inputs={"x": TensorSpec("M N", dtypes=("int32",), values=integers(-1000, 1000))},
    outputs={"y": TensorSpec("N", dtypes=("int32",))},
    dims={"M": Dim(1, 65536), "N": Dim(1, 4096)},
    workloads=[{"M": 300, "N": 70}],
    contract=Contract(identifier="ir.column_peaks"),
)
