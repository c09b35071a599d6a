"""Rows times three."""

from tilewright.task import Contract, Dim, Task, TensorSpec


def reference(x):
    return x * 3


TASK = Task(
    name="sixteen",
    reference=reference,
    inputs={"x": TensorSpec("M N")},
    outputs={"y": TensorSpec("M N")},
    dims={"M": Dim(1, 4096), "N": Dim(1, 4096)},
    workloads=[{"M": 7, "N": 100}],
    contract=Contract(layouts="excluded"),
)
