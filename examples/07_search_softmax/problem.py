"""Softmax over rows, for searches on the CPU."""

import torch

from tilewright.task import Contract, Dim, Task, TensorSpec, Work


def reference(x):
    return torch.softmax(x, -1)


TASK = Task(
    name="search_softmax",
    reference=reference,
    inputs={"x": TensorSpec("M N")},
    outputs={"y": TensorSpec("M N")},
    dims={"M": Dim(0, 65536), "N": Dim(1, 65536)},
    workloads=[{"M": 64, "N": 2000}, {"M": 300, "N": 333}],
    contract=Contract(identifier="search_softmax"),
    work=Work(bytes="2*M*N*itemsize", flops="5*M*N"),
)
