"""Matrix product in float32 whose last bits may change from run to run."""

import torch

from tilewright.task import Contract, Dim, Task, TensorSpec, Work


def reference(a, b):
    return torch.matmul(a, b)


TASK = Task(
    name="matmul_atomic",
    reference=reference,
    inputs={"a": TensorSpec("M K"), "b": TensorSpec("K N")},
    outputs={"c": TensorSpec("M N")},
    dims={"M": Dim(1, 4096), "K": Dim(1, 16384), "N": Dim(1, 4096)},
    workloads=[{"M": 32, "K": 256, "N": 48}, {"M": 17, "K": 100, "N": 33}, {"M": 3, "K": 513, "N": 5}],
    contract=Contract(identifier="matmul.any_order", determinism="none", empty="excluded"),
    work=Work(bytes="4*(M*K+K*N+M*N)", flops="2*M*N*K"),
)
