"""Rotary embedding of queries and keys; the angles are shared by the batch (C = 1) or each sequence's own (C = B)."""

import torch

from tilewright.task import Contract, Dim, Task, TensorSpec


def rotate(x, cos, sin):
    a, b = x.chunk(2, -1)
    return torch.cat((a * cos - b * sin, b * cos + a * sin), -1)


def reference(q, k, angles):
    cos, sin = angles.cos()[:, None], angles.sin()[:, None]
    return rotate(q, cos, sin), rotate(k, cos, sin)


TASK = Task(
    name="rope",
    reference=reference,
    inputs={
        "q": TensorSpec(("B", "H", "S", "2*D")),
        "k": TensorSpec(("B", "G", "S", "2*D")),
        "angles": TensorSpec("C S D"),
    },
    dims={"B": Dim(1, 16), "C": Dim(1, 16), "H": Dim(1, 64), "G": Dim(1, 64), "S": Dim(1, 8192), "D": Dim(1, 128)},
    constraints=("C == 1 or C == B",),
    workloads=[{"B": 2, "C": 1, "H": 4, "G": 2, "S": 16, "D": 32}],
    contract=Contract(identifier="rope", layouts="excluded", special_values="excluded"),
)
