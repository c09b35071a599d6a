"""Sinkhorn's iteration on small square matrices, a given number of times; with the gradient of these iterations."""

from reference import sinkhorn

from tilewright.task import Contract, Dim, Scalar, Task, TensorSpec, Work


def reference(x, iterations):
    return sinkhorn(x, iterations)


FLOATS = ("float32", "float16", "bfloat16")

TASK = Task(
    name="sinkhorn",
    reference=reference,
    inputs={"x": TensorSpec("B N N", dtypes=FLOATS, requires_grad=True), "iterations": Scalar(20, 1, 3)},
    outputs={"y": TensorSpec("B N N", dtypes=FLOATS)},
    dims={"B": Dim(0, 1 << 24), "N": Dim(2, 8)},
    workloads=[{"B": 40, "N": 4}, {"dims": {"B": 131, "N": 3}, "scalars": {"iterations": 3}},
               {"dims": {"B": 9, "N": 8}, "dtype": "bfloat16"}],
    contract=Contract(identifier="ops.birkhoff.sinkhorn", gradients="promised", batch_invariant=("B",),
                      accumulate="float32"),
    work=Work(bytes="2*B*N*N*itemsize", flops="(10*20 + 1)*B*N*N"),
)  # fmt: skip
