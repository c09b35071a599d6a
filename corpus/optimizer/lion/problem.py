"""One step of the Lion optimiser, in place by contract, weight decay decoupled."""

import torch

from tilewright.task import Contract, Dim, Scalar, Task, TensorSpec, Work


def reference(param, grad, momentum, lr, beta1, beta2, weight_decay):
    update = torch.sign(beta1 * momentum + (1.0 - beta1) * grad)
    param.mul_(1.0 - lr * weight_decay).sub_(lr * update)
    momentum.mul_(beta2).add_(grad, alpha=1.0 - beta2)
    return param, momentum


TASK = Task(
    name="lion_step",
    reference=reference,
    inputs={
        "param": TensorSpec("N", mutated=True),
        "grad": TensorSpec("N"),
        "momentum": TensorSpec("N", mutated=True),
        "lr": Scalar(1e-3),
        "beta1": Scalar(0.9),
        "beta2": Scalar(0.99),
        "weight_decay": Scalar(0.0, 0.1),
    },
    dims={"N": Dim(1, 1 << 26)},
    workloads=[{"N": 2048}, {"N": 1000}],
    contract=Contract(identifier="lion", aliasing="allowed", layouts="excluded", special_values="excluded"),
    work=Work(bytes="5*N*itemsize", flops="9*N"),
)
