"""Layer normalisation with the gradients of input, weight and bias."""

import torch

from tilewright.task import Contract, Dim, Task, TensorSpec


def reference(x, weight, bias):
    mean = x.mean(dim=-1, keepdim=True)
    centred = x - mean
    variance = (centred * centred).mean(dim=-1, keepdim=True)
    return centred * torch.rsqrt(variance + 1e-5) * weight + bias


TASK = Task(
    name="layer_norm_backward",
    reference=reference,
    inputs={
        "x": TensorSpec("M N", requires_grad=True),
        "weight": TensorSpec("N", requires_grad=True),
        "bias": TensorSpec("N", requires_grad=True),
    },
    outputs={"y": TensorSpec("M N")},
    dims={"M": Dim(1, 65536), "N": Dim(2, 8192)},
    workloads=[{"M": 16, "N": 64}, {"M": 10, "N": 100}, {"M": 3, "N": 7}],
    contract=Contract(identifier="layer_norm.grad", gradients="promised", empty="excluded", special_values="excluded"),
)
