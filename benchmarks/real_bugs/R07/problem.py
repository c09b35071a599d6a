"""One step of the Lion optimiser (Chen et al., 2023), in place, weight decay decoupled."""

import torch

from tilewright.task import Contract, Dim, Scalar, Task, TensorSpec


def reference(param, grad, momentum, weight_decay):
    update = torch.sign(0.9 * momentum + (1.0 - 0.9) * grad)
    param.mul_(1.0 - 1e-2 * weight_decay).sub_(1e-2 * update)
    momentum.mul_(0.99).add_(grad, alpha=1.0 - 0.99)
    return param, momentum


TASK = Task(
    name="lion_step",
    reference=reference,
    inputs={
        "param": TensorSpec("N", mutated=True),
        "grad": TensorSpec("N"),
        "momentum": TensorSpec("N", mutated=True),
        "weight_decay": Scalar(0.0, 0.1),
    },
    dims={"N": Dim(1, 1 << 26)},
    workloads=[{"N": 2048}],
    contract=Contract(identifier="lion", aliasing="allowed", layouts="excluded", special_values="excluded"),
)
