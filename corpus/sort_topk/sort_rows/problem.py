"""Each row in ascending order; values only."""

import torch

from tilewright.task import Contract, Dim, Task, TensorSpec, Work


def reference(x):
    return torch.sort(x, dim=-1).values


TASK = Task(
    name="sort_rows",
    reference=reference,
    inputs={"x": TensorSpec("M N")},
    outputs={"y": TensorSpec("M N")},
    dims={"M": Dim(1, 1 << 16), "N": Dim(1, 1024)},
    workloads=[{"M": 16, "N": 64}, {"M": 5, "N": 50}],
    contract=Contract(identifier="sort.rows", nan="unspecified", special_values="excluded", batch_invariant=("M",)),
    work=Work(bytes="2*M*N*itemsize"),
)
