"""LayerNorm over rows with weight and bias, with more elements than 32 bits count."""

import torch

from tilewright.task import Contract, Dim, Task, TensorSpec


def reference(x, weight, bias):
    return torch.nn.functional.layer_norm(x, (x.shape[-1],), weight, bias, 1e-5)


TASK = Task(
    name="layer_norm",
    reference=reference,
    inputs={"x": TensorSpec("M N"), "weight": TensorSpec("N"), "bias": TensorSpec("N")},
    dims={"M": Dim(1, 65536), "N": Dim(2, 65536)},
    workloads=[{"M": 64, "N": 1000}],
    contract=Contract(identifier="layer_norm", layouts="excluded", special_values="excluded"),
)
