"""SwiGLU on a packed pair: silu of the first half of each row times the second half."""

import torch

from tilewright.task import Contract, Dim, Task, TensorSpec, Work


def reference(x):
    gate, up = x.chunk(2, dim=-1)
    return torch.nn.functional.silu(gate) * up


TASK = Task(
    name="swiglu",
    reference=reference,
    inputs={"x": TensorSpec(("M", "2*H"), dtypes=("float32", "bfloat16"))},
    outputs={"y": TensorSpec("M H")},
    dims={"M": Dim(0, 1 << 20), "H": Dim(1, 1 << 15)},
    workloads=[{"M": 64, "H": 256}, {"M": 5, "H": 200}],
    contract=Contract(identifier="swiglu", batch_invariant=("M",)),
    work=Work(bytes="3*M*H*itemsize", flops="7*M*H"),
)
