"""Softmax along any axis of rows of any length, with a scale; with gradients."""

from reference import softmax

from tilewright.task import Contract, Dim, Scalar, Task, TensorSpec, Values, Work, laws


def reference(x, axis=-1, scale=1.0):
    return softmax(x, None, axis, scale)


FLOATS = ("float32", "float16", "bfloat16")

TASK = Task(
    name="softmax",
    reference=reference,
    inputs={
        "x": TensorSpec("B M N", dtypes=FLOATS, values=Values(std=3.0), requires_grad=True),
        "axis": Scalar(-1, 0, 1),
        "scale": Scalar(1.0, 0.125),
    },
    outputs={"y": TensorSpec("B M N", dtypes=FLOATS)},
    dims={"B": Dim(0, 1 << 12), "M": Dim(0, 1 << 20), "N": Dim(0, 1 << 20)},
    workloads=[
        {"B": 1, "M": 16, "N": 128},
        {"dims": {"B": 3, "M": 5, "N": 257}, "scalars": {"axis": 1, "scale": 0.125}},
        {"dims": {"B": 1, "M": 2, "N": 33000}, "dtype": "bfloat16"},
    ],
    contract=Contract(identifier="ops.softmax", gradients="promised", accumulate="float32"),
    laws={"shift": laws.shift_invariant("x")},
    work=Work(bytes="2*B*M*N*itemsize", flops="5*B*M*N"),
)
