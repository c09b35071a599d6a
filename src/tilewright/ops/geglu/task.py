"""GEGLU, ``gelu(gate) * up``, exact or by tanh; with gradients."""

from reference import geglu

from tilewright.task import Contract, Dim, Scalar, Task, TensorSpec, Work


def reference(gate, up, approximate="none"):
    return geglu(gate, up, approximate)


FLOATS = ("float32", "float16", "bfloat16")

TASK = Task(
    name="geglu",
    reference=reference,
    inputs={
        "gate": TensorSpec("M N", dtypes=FLOATS, requires_grad=True),
        "up": TensorSpec("M N", dtypes=FLOATS, requires_grad=True),
        "approximate": Scalar("none", "tanh"),
    },
    outputs={"y": TensorSpec("M N", dtypes=FLOATS)},
    dims={"M": Dim(0, 1 << 24), "N": Dim(0, 1 << 20)},
    workloads=[
        {"M": 16, "N": 128},
        {"dims": {"M": 5, "N": 257}, "scalars": {"approximate": "tanh"}},
        {"dims": {"M": 2, "N": 33000}, "dtype": "bfloat16"},
    ],
    contract=Contract(identifier="ops.geglu", gradients="promised", batch_invariant=("M",)),
    work=Work(bytes="3*M*N*itemsize", flops="20*M*N"),
)
