"""Sum of a vector, in one launch: the program that comes last adds the partial sums."""

from tilewright.task import Contract, Dim, Task, TensorSpec


def reference(x):
    return x.sum()


TASK = Task(
    name="last_one",
    reference=reference,
    inputs={"x": TensorSpec("N")},
    outputs={"y": TensorSpec("")},
    dims={"N": Dim(1, 4096)},
    workloads=[{"N": 300}],
    contract=Contract(layouts="excluded"),
)
