"""RMS norm without a weight; with gradients."""

from reference import rms_norm

from tilewright.task import Contract, Dim, Scalar, Task, TensorSpec, Work


def reference(x, eps=1e-6):
    return rms_norm(x, None, eps)


FLOATS = ("float32", "float16", "bfloat16")

TASK = Task(
    name="rms_norm_plain",
    reference=reference,
    inputs={"x": TensorSpec("M N", dtypes=FLOATS, requires_grad=True), "eps": Scalar(1e-6, 1e-2)},
    outputs={"y": TensorSpec("M N", dtypes=FLOATS)},
    dims={"M": Dim(0, 1 << 24), "N": Dim(1, 1 << 20)},
    workloads=[{"M": 16, "N": 128}, {"dims": {"M": 2, "N": 33000}, "scalars": {"eps": 1e-2}}],
    contract=Contract(
        identifier="ops.rms_norm.plain", gradients="promised", accumulate="float32", batch_invariant=("M",),
    ),
    work=Work(bytes="2*M*N*itemsize", flops="3*M*N"),
)  # fmt: skip
