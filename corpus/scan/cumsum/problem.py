"""Running sum along the last axis in the input's own precision."""

import torch

from tilewright.task import Contract, Dim, Task, TensorSpec, Work


def reference(x):
    return torch.cumsum(x, dim=-1)


TASK = Task(
    name="cumsum",
    reference=reference,
    inputs={"x": TensorSpec("M N", dtypes=("float32", "float64"))},
    outputs={"y": TensorSpec("M N", dtypes=("float32", "float64"))},
    dims={"M": Dim(0, 65536), "N": Dim(0, 65536)},
    workloads=[{"M": 16, "N": 256}, {"M": 3, "N": 500}, {"M": 2, "N": 1030}],
    contract=Contract(identifier="cumsum.last", layouts="promised", empty="promised", special_values="promised"),
    work=Work(bytes="2*M*N*itemsize", flops="M*N"),
)
