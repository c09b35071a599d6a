"""SwiGLU, ``silu(gate) * up``; with gradients."""

from reference import swiglu

from tilewright.task import Contract, Dim, Task, TensorSpec, Work


def reference(gate, up):
    return swiglu(gate, up)


FLOATS = ("float32", "float16", "bfloat16")

TASK = Task(
    name="swiglu",
    reference=reference,
    inputs={
        "gate": TensorSpec("M N", dtypes=FLOATS, requires_grad=True),
        "up": TensorSpec("M N", dtypes=FLOATS, requires_grad=True),
    },
    outputs={"y": TensorSpec("M N", dtypes=FLOATS)},
    dims={"M": Dim(0, 1 << 24), "N": Dim(0, 1 << 20)},
    workloads=[{"M": 16, "N": 128}, {"M": 5, "N": 257}, {"dims": {"M": 2, "N": 33000}, "dtype": "bfloat16"}],
    contract=Contract(identifier="ops.swiglu", gradients="promised", batch_invariant=("M",)),
    work=Work(bytes="3*M*N*itemsize", flops="6*M*N"),
)
