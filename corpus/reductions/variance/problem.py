"""Unbiased variance of each row in the input's own precision."""

import torch

from tilewright.task import Contract, Dim, Task, TensorSpec


def reference(x):
    return torch.var(x, dim=-1)


TASK = Task(
    name="variance",
    reference=reference,
    inputs={"x": TensorSpec("M N", dtypes=("float32", "float64"))},
    outputs={"y": TensorSpec("M", dtypes=("float32", "float64"))},
    dims={"M": Dim(0, 65536), "N": Dim(2, 65536)},
    workloads=[{"M": 16, "N": 256}, {"M": 4, "N": 100}, {"M": 3, "N": 2}],
    contract=Contract(identifier="var.last", layouts="promised", empty="promised", special_values="promised"),
)
