"""SwiGLU of the two halves of one tensor; with gradients."""

import torch

from tilewright.task import Contract, Dim, Task, TensorSpec, Work


def reference(x):
    gate, up = x.to(torch.promote_types(x.dtype, torch.float32)).chunk(2, dim=-1)
    return (torch.nn.functional.silu(gate) * up).to(x.dtype)


FLOATS = ("float32", "float16", "bfloat16")

TASK = Task(
    name="swiglu_packed",
    reference=reference,
    inputs={"x": TensorSpec("M 2*N", dtypes=FLOATS, requires_grad=True)},
    outputs={"y": TensorSpec("M N", dtypes=FLOATS)},
    dims={"M": Dim(0, 1 << 24), "N": Dim(0, 1 << 20)},
    workloads=[{"M": 16, "N": 128}, {"M": 5, "N": 257}, {"dims": {"M": 2, "N": 33000}, "dtype": "bfloat16"}],
    contract=Contract(identifier="ops.swiglu.packed", gradients="promised", batch_invariant=("M",)),
    work=Work(bytes="3*M*N*itemsize", flops="6*M*N"),
)
