"""Softmax of scaled values over rows, on which skills are verified."""

import torch

from tilewright.task import Contract, Dim, Task, TensorSpec, Values, Work, Workload


def reference(x):
    return torch.softmax(x * 0.125, -1)


TASK = Task(
    name="scaled_softmax",
    reference=reference,
    inputs={"x": TensorSpec("M N", values=Values(kind="uniform", low=-32.0, high=32.0))},
    outputs={"y": TensorSpec("M N")},
    dims={"M": Dim(0, 4096), "N": Dim(1, 4096)},
    workloads=(Workload(dims={"M": 16, "N": 200}),),
    contract=Contract(identifier="scaled_softmax"),
    work=Work(bytes="2*M*N*itemsize", flops="6*M*N"),
)
