"""Running maximum along the last axis; once NaN was met everything after it is NaN."""

import torch

from tilewright.task import Contract, Dim, Task, TensorSpec


def reference(x):
    return torch.cummax(x, dim=-1).values


TASK = Task(
    name="running_max",
    reference=reference,
    inputs={"x": TensorSpec("M N")},
    outputs={"y": TensorSpec("M N")},
    dims={"M": Dim(1, 65536), "N": Dim(1, 65536)},
    workloads=[{"M": 16, "N": 128}, {"M": 5, "N": 33}],
    contract=Contract(identifier="cummax.last", layouts="promised", empty="excluded", special_values="promised",
                      nan="propagate"),
)
