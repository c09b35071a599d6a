"""Layer norm over rows of any length, with a weight and no bias; with gradients."""

from reference import layer_norm

from tilewright.task import Contract, Dim, Scalar, Task, TensorSpec, Work


def reference(x, weight, eps=1e-5):
    return layer_norm(x, weight, None, eps)


FLOATS = ("float32", "float16", "bfloat16")

TASK = Task(
    name="layer_norm_unbiased",
    reference=reference,
    inputs={
        "x": TensorSpec("M N", dtypes=FLOATS, requires_grad=True),
        "weight": TensorSpec("N", dtypes=FLOATS, requires_grad=True),
        "eps": Scalar(1e-5, 1e-2),
    },
    outputs={"y": TensorSpec("M N", dtypes=FLOATS)},
    dims={"M": Dim(0, 1 << 24), "N": Dim(1, 1 << 20)},
    workloads=[
        {"M": 16, "N": 128},
        {"dims": {"M": 5, "N": 257}, "scalars": {"eps": 1e-2}},
        {"dims": {"M": 2, "N": 33000}, "dtype": "bfloat16"},
    ],
    contract=Contract(
        identifier="ops.layer_norm.unbiased", gradients="promised", accumulate="float32", batch_invariant=("M",),
    ),
    work=Work(bytes="(2*M*N+N)*itemsize", flops="5*M*N"),
)  # fmt: skip
