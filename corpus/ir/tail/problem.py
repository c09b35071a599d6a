"""Scaling of a vector, with tiles of one size whatever its length."""

from tilewright.task import Contract, Dim, Task, TensorSpec


def reference(x):
    return 2 * x + 1


TASK = Task(
    name="scale and shift",
    reference=reference,
    inputs={"x": TensorSpec("N", dtypes=("float32", "float16"))},
    outputs={"y": TensorSpec("N")},
    dims={"N": Dim(1, 1 << 26)},
    workloads=[{"N": 2000}],
    contract=Contract(identifier="ir.scale_and_shift"),
)
