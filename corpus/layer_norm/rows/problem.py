"""Layer normalisation over the last axis, with weight and bias."""

import torch

from tilewright.task import Contract, Dim, Scalar, Task, TensorSpec, Work


def reference(x, weight, bias, eps):
    mean = x.mean(dim=-1, keepdim=True)
    centred = x - mean
    variance = (centred * centred).mean(dim=-1, keepdim=True)
    return centred * torch.rsqrt(variance + eps) * weight + bias


TASK = Task(
    name="layer_norm",
    reference=reference,
    inputs={
        "x": TensorSpec("M N"),
        "weight": TensorSpec("N"),
        "bias": TensorSpec("N"),
        "eps": Scalar(1e-5, 1e-3),
    },
    outputs={"y": TensorSpec("M N")},
    dims={"M": Dim(0, 65536), "N": Dim(1, 32768)},
    workloads=[{"M": 16, "N": 1000}, {"M": 3, "N": 100}, {"M": 5, "N": 513}],
    contract=Contract(identifier="layer_norm", layouts="promised", empty="promised", special_values="promised"),
    work=Work(bytes="(2*M*N+2*N)*itemsize", flops="8*M*N"),
)
