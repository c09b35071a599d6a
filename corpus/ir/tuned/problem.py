"""Column sums of a matrix, by a kernel that tunes itself on its first call."""

import torch

from tilewright.task import Contract, Dim, Task, TensorSpec


def reference(x):
    return torch.sum(x, dim=0)


TASK = Task(
    name="tuned column sum",
    reference=reference,
    inputs={"x": TensorSpec("M N", dtypes=("float32",))},
    outputs={"y": TensorSpec("N")},
    dims={"M": Dim(1, 1 << 14), "N": Dim(1, 1 << 14)},
    workloads=[{"M": 96, "N": 160}],
    contract=Contract(identifier="ir.tuned_column_sum", determinism="none"),
)
