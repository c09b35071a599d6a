"""Exact (erf) GELU in float32, for kernels in C."""

import torch

from tilewright.task import Contract, Dim, Task, TensorSpec, Work


def reference(x):
    return torch.nn.functional.gelu(x)


TASK = Task(
    name="gelu_erf_f32",
    reference=reference,
    inputs={"x": TensorSpec("M N", dtypes=("float32",))},
    outputs={"y": TensorSpec("M N")},
    dims={"M": Dim(0, 1 << 20), "N": Dim(0, 1 << 16)},
    workloads=[{"M": 64, "N": 512}, {"M": 33, "N": 100}],
    contract=Contract(identifier="gelu.erf.f32", batch_invariant=("M",)),
    work=Work(bytes="2*M*N*itemsize", flops="10*M*N"),
)
