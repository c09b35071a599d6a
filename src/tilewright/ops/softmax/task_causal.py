"""Softmax of rows of which row i takes in columns up to i + N - M; with gradients."""

from reference import softmax

from tilewright.task import Contract, Dim, Scalar, Task, TensorSpec, Values, Work


def reference(x, scale=1.0):
    return softmax(x, None, -1, scale, True)


FLOATS = ("float32", "float16", "bfloat16")

TASK = Task(
    name="causal_softmax",
    reference=reference,
    inputs={
        "x": TensorSpec("B M N", dtypes=FLOATS, values=Values(std=3.0), requires_grad=True),
        "scale": Scalar(1.0, 0.125),
    },
    dims={"B": Dim(0, 1 << 12), "M": Dim(0, 1 << 20), "N": Dim(0, 1 << 20)},
    workloads=[
        {"B": 2, "M": 32, "N": 32},
        {"dims": {"B": 1, "M": 9, "N": 20}, "scalars": {"scale": 0.125}},
        {"dims": {"B": 1, "M": 2, "N": 33000}, "dtype": "bfloat16"},
    ],
    contract=Contract(identifier="ops.softmax.causal", gradients="promised", accumulate="float32"),
    work=Work(bytes="2*B*M*N*itemsize", flops="5*B*M*N"),
)
