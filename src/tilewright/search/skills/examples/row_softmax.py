"""Softmax over rows, on which skills are verified."""

import torch

from tilewright.task import Contract, Dim, Task, TensorSpec, Work, Workload


def reference(x):
    return torch.softmax(x, -1)


TASK = Task(
    name="row_softmax",
    reference=reference,
    inputs={"x": TensorSpec("M N")},
    outputs={"y": TensorSpec("M N")},
    dims={"M": Dim(0, 65536), "N": Dim(1, 65536)},
    workloads=(Workload(dims={"M": 16, "N": 200}),),
    contract=Contract(identifier="row_softmax"),
    work=Work(bytes="2*M*N*itemsize", flops="5*M*N"),
)
