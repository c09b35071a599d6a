"""Attention without a mask: softmax(q kᵀ / √d) v."""

import torch

from tilewright.task import Contract, Dim, Task, TensorSpec, uniform


def reference(q, k, v):
    return torch.softmax(q @ k.mT * q.shape[-1] ** -0.5, -1) @ v


TASK = Task(
    name="attention",
    reference=reference,
    inputs={
        "q": TensorSpec("B H S D", values=uniform(-1, 1)),
        "k": TensorSpec("B H T D", values=uniform(-1, 1)),
        "v": TensorSpec("B H T D", values=uniform(-1, 1)),
    },
    dims={
        "B": Dim(1, 8),
        "H": Dim(1, 16),
        "S": Dim(1, 8192),
        "T": Dim(16, 8192, multiple_of=16),
        "D": Dim(sizes=(16, 32, 64, 128)),
    },
    workloads=[{"B": 1, "H": 2, "S": 16, "T": 16, "D": 16}],
    contract=Contract(identifier="attention", layouts="excluded", special_values="excluded"),
)
