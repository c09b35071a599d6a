"""Matrix product in float32, as exact as float32 multiplications are."""

from tilewright.task import Contract, Dim, Task, TensorSpec


def reference(a, b):
    return a @ b


TASK = Task(
    name="single matmul",
    reference=reference,
    inputs={"a": TensorSpec("M K"), "b": TensorSpec("K N")},
    outputs={"c": TensorSpec("M N")},
    dims={"M": Dim(1, 1 << 14), "K": Dim(1, 1 << 14), "N": Dim(1, 1 << 14)},
    workloads=[{"M": 48, "K": 80, "N": 64}],
    contract=Contract(identifier="ir.single_matmul", accumulate="float32"),
)
