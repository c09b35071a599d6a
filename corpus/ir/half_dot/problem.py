"""Matrix product in half precisions, accumulated in float32."""

from tilewright.task import Contract, Dim, Task, TensorSpec


def reference(a, b):
    return a @ b


TASK = Task(
    name="half matmul",
    reference=reference,
    inputs={"a": TensorSpec("M K", dtypes=("bfloat16", "float16")), "b": TensorSpec("K N", dtypes=("bfloat16", "float16"))},
    outputs={"c": TensorSpec("M N", dtypes=("bfloat16", "float16"))},
    dims={"M": Dim(1, 1 << 14), "K": Dim(1, 1 << 14), "N": Dim(1, 1 << 14)},
    workloads=[{"M": 48, "K": 80, "N": 64}],
    contract=Contract(identifier="ir.half_matmul", accumulate="float32"),
)
