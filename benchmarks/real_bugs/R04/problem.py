"""Hardshrink: zero from -lambda to lambda, both ends included."""

import torch

from tilewright.task import Contract, Dim, Scalar, Task, TensorSpec


def reference(x, lambd):
    return torch.nn.functional.hardshrink(x, lambd)


TASK = Task(
    name="hardshrink",
    reference=reference,
    inputs={"x": TensorSpec("N"), "lambd": Scalar(0.5, 1.0)},
    dims={"N": Dim(1, 1 << 20)},
    workloads=[{"N": 257}],
    contract=Contract(identifier="hardshrink", layouts="excluded", nan="unspecified"),
)
