"""Softmax with its gradient."""

import torch

from tilewright.task import Contract, Dim, Task, TensorSpec


def reference(x):
    return torch.softmax(x, dim=-1)


TASK = Task(
    name="softmax_backward",
    reference=reference,
    inputs={"x": TensorSpec("M N", requires_grad=True)},
    outputs={"y": TensorSpec("M N")},
    dims={"M": Dim(1, 65536), "N": Dim(1, 4096)},
    workloads=[{"M": 8, "N": 100}, {"M": 5, "N": 257}],
    contract=Contract(identifier="softmax.last.grad", gradients="promised", empty="excluded", special_values="excluded"),
)
