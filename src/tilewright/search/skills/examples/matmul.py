"""A product of matrices, on which skills are verified."""

from tilewright.task import Contract, Dim, Task, TensorSpec, Work, Workload


def reference(a, b):
    return a @ b


TASK = Task(
    name="matmul",
    reference=reference,
    inputs={"a": TensorSpec("M K"), "b": TensorSpec("K N")},
    outputs={"c": TensorSpec("M N")},
    dims={"M": Dim(0, 4096), "K": Dim(0, 4096), "N": Dim(0, 4096)},
    workloads=(Workload(dims={"M": 48, "K": 40, "N": 56}),),
    contract=Contract(identifier="matmul"),
    work=Work(bytes="(M*K+K*N+M*N)*itemsize", flops="2*M*K*N"),
)
