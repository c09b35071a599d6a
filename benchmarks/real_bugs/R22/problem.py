"""The backward pass of a slice: the gradient of ``x[:, start:end:step]`` put back into zeros of x's shape."""

import torch

from tilewright.task import Contract, Dim, Scalar, Task, TensorSpec


def reference(x, start, end, step):
    out = torch.zeros_like(x)
    out[:, start:end:step] = x[:, start:end:step]
    return out


TASK = Task(
    name="slice_backward",
    reference=reference,
    inputs={
        "x": TensorSpec("A N B"),
        "start": Scalar(1, -2),
        "end": Scalar(6, 100, 9223372036854775807),
        "step": Scalar(1, 2),
    },
    dims={"A": Dim(1, 256), "N": Dim(8, 4096), "B": Dim(1, 1024)},
    workloads=[{"A": 3, "N": 8, "B": 5}],
    contract=Contract(identifier="slice_backward", layouts="excluded"),
)
