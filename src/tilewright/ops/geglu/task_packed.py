"""GEGLU, exact or by tanh, of the two halves of one tensor; with gradients."""

from reference import geglu_packed

from tilewright.task import Contract, Dim, Scalar, Task, TensorSpec, Work


def reference(x, approximate="none"):
    return geglu_packed(x, approximate)


FLOATS = ("float32", "float16", "bfloat16")

TASK = Task(
    name="geglu_packed",
    reference=reference,
    inputs={
        "x": TensorSpec("M 2*N", dtypes=FLOATS, requires_grad=True),
        "approximate": Scalar("none", "tanh"),
    },
    outputs={"y": TensorSpec("M N", dtypes=FLOATS)},
    dims={"M": Dim(0, 1 << 24), "N": Dim(0, 1 << 20)},
    workloads=[
        {"M": 16, "N": 128},
        {"dims": {"M": 5, "N": 257}, "scalars": {"approximate": "tanh"}},
        {"dims": {"M": 2, "N": 33000}, "dtype": "bfloat16"},
    ],
    contract=Contract(identifier="ops.geglu.packed", gradients="promised", batch_invariant=("M",)),
    work=Work(bytes="3*M*N*itemsize", flops="20*M*N"),
)
