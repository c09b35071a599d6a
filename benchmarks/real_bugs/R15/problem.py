"""Rotary embedding of queries and keys, with their gradients; upstream gradients of any layout."""

import torch

from tilewright.task import Contract, Dim, Task, TensorSpec


def rotate(x, cos, sin):
    a, b = x.chunk(2, -1)
    return torch.cat((a * cos - b * sin, b * cos + a * sin), -1)


def reference(q, k, angles):
    cos, sin = angles.cos(), angles.sin()
    return rotate(q, cos, sin), rotate(k, cos, sin)


TASK = Task(
    name="rope",
    reference=reference,
    inputs={
        "q": TensorSpec(("B", "H", "S", "2*D"), requires_grad=True, layouts="contiguous"),
        "k": TensorSpec(("B", "G", "S", "2*D"), requires_grad=True, layouts="contiguous"),
        "angles": TensorSpec("S D", layouts="contiguous"),
    },
    dims={"B": Dim(1, 64), "H": Dim(1, 64), "G": Dim(1, 64), "S": Dim(2, 8192), "D": Dim(2, 128)},
    constraints=("G <= H",),
    workloads=[{"B": 2, "H": 4, "G": 2, "S": 16, "D": 16}],
    contract=Contract(identifier="rope", gradients="promised", backward="in place", special_values="excluded"),
)
