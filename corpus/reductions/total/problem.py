"""Sum of all elements of a 3-d tensor."""

from tilewright.task import Contract, Dim, Task, TensorSpec, uniform


def reference(x):
    return x.sum()


TASK = Task(
    name="total",
    reference=reference,
    inputs={"x": TensorSpec("B M N", values=uniform(-1.0, 1.0))},
    outputs={"y": TensorSpec("")},
    dims={"B": Dim(0, 4096), "M": Dim(0, 4096), "N": Dim(0, 4096)},
    workloads=[{"B": 4, "M": 16, "N": 32}, {"B": 3, "M": 7, "N": 11}],
    contract=Contract(identifier="sum.all", layouts="promised", empty="promised", special_values="promised"),
)
