"""The largest element of a matrix of any layout."""

from tilewright.task import Contract, Dim, Task, TensorSpec


def reference(x):
    return x.max()


TASK = Task(
    name="max",
    reference=reference,
    inputs={"x": TensorSpec("M N")},
    dims={"M": Dim(1, 4096), "N": Dim(1, 4096)},
    workloads=[{"M": 16, "N": 100}],
    contract=Contract(identifier="max", nan="unspecified"),
)
