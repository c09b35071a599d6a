"""One step of AdamW in place by contract; returns nothing."""

import math

from tilewright.task import Contract, Dim, Scalar, Task, TensorSpec, Work, uniform


def reference(param, grad, m, v, lr, weight_decay, step):
    beta1, beta2, eps = 0.9, 0.999, 1e-8
    param.mul_(1.0 - lr * weight_decay)
    m.mul_(beta1).add_(grad, alpha=1.0 - beta1)
    v.mul_(beta2).addcmul_(grad, grad, value=1.0 - beta2)
    scale = lr / (1.0 - beta1**step)
    denom = v.sqrt().div_(math.sqrt(1.0 - beta2**step)).add_(eps)
    param.addcdiv_(m, denom, value=-scale)


TASK = Task(
    name="adamw_step",
    reference=reference,
    inputs={
        "param": TensorSpec("N", mutated=True),
        "grad": TensorSpec("N"),
        "m": TensorSpec("N", mutated=True),
        "v": TensorSpec("N", mutated=True, values=uniform(0.01, 1.0)),
        "lr": Scalar(1e-3, 1e-1),
        "weight_decay": Scalar(0.01, 0.0),
        "step": Scalar(1, 10, 1000),
    },
    dims={"N": Dim(1, 1 << 26)},
    workloads=[{"N": 4096}, {"N": 777}],
    contract=Contract(identifier="adamw", aliasing="allowed", layouts="excluded", special_values="excluded"),
    work=Work(bytes="7*N*itemsize", flops="14*N"),
)
