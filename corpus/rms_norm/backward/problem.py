"""RMS normalisation with the gradients of input and weight."""

import torch

from tilewright.task import Contract, Dim, Task, TensorSpec


def reference(x, weight):
    return x * torch.rsqrt((x * x).mean(dim=-1, keepdim=True) + 1e-6) * weight


TASK = Task(
    name="rms_norm_backward",
    reference=reference,
    inputs={"x": TensorSpec("M N", requires_grad=True), "weight": TensorSpec("N", requires_grad=True)},
    outputs={"y": TensorSpec("M N")},
    dims={"M": Dim(1, 65536), "N": Dim(1, 8192)},
    workloads=[{"M": 16, "N": 128}, {"M": 9, "N": 100}, {"M": 2, "N": 33}],
    contract=Contract(identifier="rms_norm.grad", gradients="promised", empty="excluded", special_values="excluded"),
)
