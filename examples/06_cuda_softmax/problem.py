"""Softmax over rows, for kernels in CUDA C++."""

import torch

from tilewright.task import Contract, Dim, Task, TensorSpec, Work


def reference(x):
    return torch.softmax(x, -1)


TASK = Task(
    name="cuda_row_softmax",
    reference=reference,
    inputs={"x": TensorSpec("M N")},
    outputs={"y": TensorSpec("M N")},
    dims={"M": Dim(1, 1 << 18), "N": Dim(1, 1 << 18)},
    workloads=[{"M": 128, "N": 1000}],
    contract=Contract(identifier="cuda_row_softmax", batch_invariant=("M",), layouts="excluded"),
    work=Work(bytes="2*M*N*itemsize", flops="5*M*N"),
)
