"""Smooth L1 loss of each element, with the gradients of both inputs."""

import torch

from tilewright.task import Contract, Dim, Task, TensorSpec, normal


def reference(input, target):
    return torch.nn.functional.smooth_l1_loss(input, target, reduction="none", beta=1.0)


TASK = Task(
    name="smooth_l1",
    reference=reference,
    inputs={
        "input": TensorSpec("N", values=normal(0, 3), requires_grad=True),
        "target": TensorSpec("N", values=normal(0, 3), requires_grad=True),
    },
    dims={"N": Dim(1, 1 << 20)},
    workloads=[{"N": 257}],
    contract=Contract(identifier="smooth_l1", gradients="promised", layouts="excluded", special_values="excluded"),
)
