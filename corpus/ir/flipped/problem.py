"""Reverse each row in place, and return for each row the largest value in it and in the row after it."""

import torch

from tilewright.task import Contract, Dim, Task, TensorSpec, integers


def reference(x):
    peak = x.amax(1)
    after = torch.cat([peak[1:], peak[-1:]])
    x.copy_(x.flip(1))
    return torch.maximum(peak, after)


TASK = Task(
    name="reverse rows, peaks of neighbours",
    reference=reference,
    inputs={"x": TensorSpec("M N", dtypes=("int32",), values=integers(-1000, 1000), mutated=True)},
    outputs={"y": TensorSpec("M", dtypes=("int32",))},
    dims={"M": Dim(1, 65536), "N": Dim(1, 4096)},
    workloads=[{"M": 60, "N": 70}],
    contract=Contract(identifier="ir.reverse_peaks", layouts="excluded"),
)
