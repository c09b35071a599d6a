"""Softmax over long rows, masked scores included."""

import torch

from tilewright.task import Contract, Dim, Task, TensorSpec


def reference(x):
    return torch.softmax(x, -1)


TASK = Task(
    name="softmax",
    reference=reference,
    inputs={"x": TensorSpec("M N")},
    dims={"M": Dim(1, 4096), "N": Dim(1, 1 << 18)},
    workloads=[{"M": 2, "N": 40000}],
    contract=Contract(identifier="softmax", layouts="excluded"),
)
