"""Exact (erf) GELU, elementwise."""

import torch

from tilewright.task import Contract, Dim, Task, TensorSpec, Work


def reference(x):
    return torch.nn.functional.gelu(x)


TASK = Task(
    name="gelu_erf",
    reference=reference,
    inputs={"x": TensorSpec("M N", dtypes=("float32", "float16", "bfloat16"))},
    outputs={"y": TensorSpec("M N")},
    dims={"M": Dim(0, 1 << 20), "N": Dim(0, 1 << 16)},
    workloads=[{"M": 64, "N": 512}, {"M": 33, "N": 100}],
    contract=Contract(identifier="gelu.erf", batch_invariant=("M",)),
    work=Work(bytes="2*M*N*itemsize", flops="10*M*N"),
)
