"""Smooth L1 loss, mean over all elements."""

import torch

from tilewright.task import Contract, Dim, Scalar, Task, TensorSpec, Work


def reference(pred, target, beta):
    return torch.nn.functional.smooth_l1_loss(pred, target, beta=beta)


TASK = Task(
    name="smooth_l1",
    reference=reference,
    inputs={
        "pred": TensorSpec("M N", dtypes=("float32",)),
        "target": TensorSpec("M N", dtypes=("float32",)),
        "beta": Scalar(1.0, 0.25),
    },
    outputs={"loss": TensorSpec("")},
    dims={"M": Dim(0, 1 << 16), "N": Dim(1, 1 << 14)},
    workloads=[{"M": 32, "N": 1024}, {"M": 9, "N": 111}],
    contract=Contract(identifier="smooth_l1.mean", determinism="none"),
    work=Work(bytes="2*M*N*itemsize", flops="6*M*N"),
)
