"""Softmax over the last axis of a float32 matrix, for kernels in C."""

import torch

from tilewright.task import Contract, Dim, Task, TensorSpec, Work


def reference(x):
    return torch.softmax(x, dim=-1)


TASK = Task(
    name="softmax_f32",
    reference=reference,
    inputs={"x": TensorSpec("M N")},
    outputs={"y": TensorSpec("M N")},
    dims={"M": Dim(1, 4096), "N": Dim(1, 4096)},
    workloads=[{"M": 16, "N": 192}, {"M": 3, "N": 161}],
    contract=Contract(identifier="softmax.last.f32", special_values="promised", batch_invariant=("M",)),
    work=Work(bytes="2*M*N*itemsize", flops="5*M*N"),
)
