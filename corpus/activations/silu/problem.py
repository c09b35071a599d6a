"""SiLU, elementwise; infinities, very large values and NaN are promised."""

import torch

from tilewright.task import Contract, Dim, Task, TensorSpec, Work


def reference(x):
    return torch.nn.functional.silu(x)


TASK = Task(
    name="silu",
    reference=reference,
    inputs={"x": TensorSpec("M N", dtypes=("float32", "float16", "bfloat16"))},
    outputs={"y": TensorSpec("M N")},
    dims={"M": Dim(0, 1 << 20), "N": Dim(0, 1 << 16)},
    workloads=[{"M": 48, "N": 640}, {"M": 7, "N": 131}],
    contract=Contract(identifier="silu", batch_invariant=("M",)),
    work=Work(bytes="2*M*N*itemsize", flops="6*M*N"),
)
