"""mish(x) = x * tanh(log(1 + exp(x))), elementwise: heavy enough that a kept answer pays. Cheats of timing are played on it."""

import torch

from tilewright.task import Contract, Dim, Task, TensorSpec, Work


def reference(x):
    return torch.nn.functional.mish(x)


TASK = Task(
    name="mish",
    reference=reference,
    inputs={"x": TensorSpec("M N")},
    outputs={"y": TensorSpec("M N")},
    dims={"M": Dim(1, 1 << 12), "N": Dim(1, 1 << 12)},
    workloads=[{"M": 32, "N": 128}],
    contract=Contract(identifier="mish", special_values="excluded", layouts="excluded"),
    work=Work(bytes="2*M*N*itemsize", flops="20*M*N"),
)
