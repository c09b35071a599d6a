"""silu(a) * b, elementwise: the plain task that cheats are played on."""

import torch

from tilewright.task import Contract, Dim, Task, TensorSpec, Work


def reference(a, b):
    return torch.nn.functional.silu(a) * b


TASK = Task(
    name="silu_mul",
    reference=reference,
    inputs={"a": TensorSpec("M N"), "b": TensorSpec("M N")},
    outputs={"y": TensorSpec("M N")},
    dims={"M": Dim(1, 1 << 16), "N": Dim(1, 1 << 14)},
    workloads=[{"M": 64, "N": 256}, {"M": 30, "N": 100}],
    contract=Contract(identifier="silu_mul", special_values="excluded", layouts="excluded"),
    work=Work(bytes="3*M*N*itemsize", flops="7*M*N"),
)
