"""Sum of squares of each row: a small space for searches on the CPU."""

from tilewright.task import Contract, Dim, Task, TensorSpec, Work


def reference(x):
    return (x * x).sum(-1)


TASK = Task(
    name="row_sum_of_squares",
    reference=reference,
    inputs={"x": TensorSpec("M N")},
    outputs={"y": TensorSpec("M")},
    dims={"M": Dim(0, 4096), "N": Dim(0, 4096)},
    workloads=[{"M": 64, "N": 512}],
    contract=Contract(identifier="row_sum_of_squares", batch_invariant=("M",)),
    work=Work(bytes="(M*N+M)*itemsize", flops="2*M*N"),
)
