"""Softmax along any axis of what a mask lets take part; a row without any is all zeros; with gradients."""

from reference import softmax

from tilewright.task import Contract, Dim, Scalar, Task, TensorSpec, Values, Work


def reference(x, mask, axis=-1, scale=1.0):
    return softmax(x, mask, axis, scale)


FLOATS = ("float32", "float16", "bfloat16")

TASK = Task(
    name="masked_softmax",
    reference=reference,
    inputs={
        "x": TensorSpec("B M N", dtypes=FLOATS, values=Values(std=3.0), requires_grad=True),
        "mask": TensorSpec("M N", dtypes=("bool",), values=Values(kind="bool", p=0.6), dtype_group="mask"),
        "axis": Scalar(-1, 0, 1),
        "scale": Scalar(1.0, 0.125),
    },
    dims={"B": Dim(0, 1 << 12), "M": Dim(0, 1 << 20), "N": Dim(0, 1 << 20)},
    workloads=[
        {"B": 2, "M": 8, "N": 64},
        {"dims": {"B": 3, "M": 5, "N": 100}, "scalars": {"axis": 1, "scale": 0.125}},
        {"dims": {"B": 1, "M": 2, "N": 33000}, "dtype": "bfloat16"},
    ],
    contract=Contract(identifier="ops.softmax.masked", gradients="promised", accumulate="float32"),
    work=Work(bytes="2*B*M*N*itemsize + M*N", flops="5*B*M*N"),
)
