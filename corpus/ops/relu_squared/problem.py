"""Squared ReLU, and its gradient, as the operator promises them."""

import torch

from tilewright.task import Contract, Dim, Task, TensorSpec, Work


def reference(x):
    return torch.relu(x.to(torch.promote_types(x.dtype, torch.float32))).square().to(x.dtype)


FLOATS = ("float32", "float16", "bfloat16")

TASK = Task(
    name="relu_squared",
    reference=reference,
    inputs={"x": TensorSpec("M N", dtypes=FLOATS, requires_grad=True)},
    outputs={"y": TensorSpec("M N", dtypes=FLOATS)},
    dims={"M": Dim(0, 65536), "N": Dim(0, 16384)},
    workloads=[{"M": 16, "N": 128}, {"M": 5, "N": 257}, {"M": 3, "N": 1030}],
    contract=Contract(identifier="corpus.ops.relu_squared", gradients="promised"),
    work=Work(bytes="2*M*N*itemsize", flops="3*M*N"),
)
