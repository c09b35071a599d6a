"""RMS norm over rows of any length, with a weight and an offset of the weight; with gradients."""

from reference import rms_norm

from tilewright.task import Contract, Dim, Scalar, Task, TensorSpec, Work


def reference(x, weight, eps=1e-6, offset=0.0):
    return rms_norm(x, weight, eps, offset)


FLOATS = ("float32", "float16", "bfloat16")

TASK = Task(
    name="rms_norm",
    reference=reference,
    inputs={
        "x": TensorSpec("M N", dtypes=FLOATS, requires_grad=True),
        "weight": TensorSpec("N", dtypes=FLOATS, requires_grad=True),
        "eps": Scalar(1e-6, 1e-2),
        "offset": Scalar(0.0, 1.0),
    },
    outputs={"y": TensorSpec("M N", dtypes=FLOATS)},
    dims={"M": Dim(0, 1 << 24), "N": Dim(1, 1 << 20)},
    workloads=[
        {"M": 16, "N": 128},
        {"dims": {"M": 5, "N": 257}, "scalars": {"eps": 1e-2, "offset": 1.0}},
        {"dims": {"M": 2, "N": 33000}, "dtype": "bfloat16", "scalars": {"offset": 1.0}},
    ],
    contract=Contract(
        identifier="ops.rms_norm", gradients="promised", accumulate="float32", batch_invariant=("M",),
    ),
    work=Work(bytes="(2*M*N+N)*itemsize", flops="4*M*N"),
)  # fmt: skip
