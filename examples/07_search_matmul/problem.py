"""A product of matrices, for searches on the CPU."""

from tilewright.task import Contract, Dim, Task, TensorSpec, Work


def reference(a, b):
    return a @ b


TASK = Task(
    name="search_matmul",
    reference=reference,
    inputs={"a": TensorSpec("M K"), "b": TensorSpec("K N")},
    outputs={"c": TensorSpec("M N")},
    dims={"M": Dim(0, 2048), "K": Dim(0, 2048), "N": Dim(0, 2048)},
    workloads=[{"M": 160, "K": 192, "N": 224}, {"M": 96, "K": 256, "N": 160}],
    contract=Contract(identifier="search_matmul"),
    work=Work(bytes="(M*K+K*N+M*N)*itemsize", flops="2*M*K*N"),
)
