"""SwiGLU, and its gradients, as the operator promises them."""

import torch

from tilewright.task import Contract, Dim, Task, TensorSpec, Work


def reference(gate, up):
    wide = torch.promote_types(gate.dtype, torch.float32)
    return (torch.nn.functional.silu(gate.to(wide)) * up.to(wide)).to(gate.dtype)


FLOATS = ("float32", "float16", "bfloat16")

TASK = Task(
    name="swiglu",
    reference=reference,
    inputs={
        "gate": TensorSpec("M N", dtypes=FLOATS, requires_grad=True),
        "up": TensorSpec("M N", dtypes=FLOATS, requires_grad=True),
    },
    outputs={"y": TensorSpec("M N", dtypes=FLOATS)},
    dims={"M": Dim(0, 65536), "N": Dim(0, 16384)},
    workloads=[{"M": 16, "N": 128}, {"M": 5, "N": 257}, {"M": 3, "N": 1030}],
    contract=Contract(identifier="corpus.ops.swiglu", gradients="promised"),
    work=Work(bytes="3*M*N*itemsize", flops="6*M*N"),
)
