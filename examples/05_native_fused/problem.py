"""A chain of elementwise operations: eager PyTorch makes five passes over memory, one would do."""

from tilewright.task import Contract, Dim, Task, TensorSpec, Work


def reference(x, scale, shift, residual):
    return (x * scale + shift).clamp(min=0) * 0.5 + residual


TASK = Task(
    name="scale_shift_relu_add",
    reference=reference,
    inputs={
        "x": TensorSpec("M N"),
        "scale": TensorSpec("N"),
        "shift": TensorSpec("N"),
        "residual": TensorSpec("M N"),
    },
    outputs={"y": TensorSpec("M N")},
    dims={"M": Dim(0, 1 << 16), "N": Dim(0, 1 << 16)},
    workloads=[{"M": 256, "N": 1024}, {"M": 96, "N": 2000}],
    contract=Contract(identifier="scale_shift_relu_add", batch_invariant=("M",)),
    work=Work(bytes="(3*M*N+2*N)*itemsize", flops="5*M*N"),
)
