"""Attention of one head per batch entry, with the gradients of queries, keys and values."""

import math

import torch

from tilewright.task import Contract, Dim, Task, TensorSpec


def reference(q, k, v):
    return torch.softmax(q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1]), dim=-1) @ v


TASK = Task(
    name="attention_backward",
    reference=reference,
    inputs={
        "q": TensorSpec("B M D", requires_grad=True),
        "k": TensorSpec("B N D", requires_grad=True),
        "v": TensorSpec("B N D", requires_grad=True),
    },
    outputs={"o": TensorSpec("B M D")},
    dims={"B": Dim(1, 4096), "M": Dim(1, 4096), "N": Dim(1, 4096), "D": Dim(1, 128)},
    workloads=[
        {"B": 3, "M": 16, "N": 16, "D": 16},
        {"B": 2, "M": 35, "N": 18, "D": 8},
        {"B": 1, "M": 5, "N": 33, "D": 20},
    ],
    contract=Contract(identifier="attention.grad", gradients="promised", empty="excluded", special_values="excluded"),
)
