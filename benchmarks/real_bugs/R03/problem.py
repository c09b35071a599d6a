"""RMSNorm with the gradients of input and weight."""

import torch

from tilewright.task import Contract, Dim, Task, TensorSpec


def reference(x, weight):
    return torch.nn.functional.rms_norm(x, (x.shape[-1],), weight, 1e-5)


TASK = Task(
    name="rms_norm",
    reference=reference,
    inputs={"x": TensorSpec("M N", requires_grad=True), "weight": TensorSpec("N", requires_grad=True)},
    dims={"M": Dim(1, 65536), "N": Dim(2, 4096)},
    workloads=[{"M": 64, "N": 100}, {"M": 2049, "N": 3}],
    contract=Contract(identifier="rms_norm", gradients="promised", layouts="excluded", special_values="excluded"),
)
