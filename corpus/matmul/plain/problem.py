"""Matrix product."""

import torch

from tilewright.task import Contract, Dim, Task, TensorSpec, Work


def reference(a, b):
    return torch.matmul(a, b)


TASK = Task(
    name="matmul",
    reference=reference,
    inputs={
        "a": TensorSpec("M K", dtypes=("float32", "float16")),
        "b": TensorSpec("K N", dtypes=("float32", "float16")),
    },
    outputs={"c": TensorSpec("M N", dtypes=("float32", "float16"))},
    dims={"M": Dim(0, 65536), "K": Dim(0, 65536), "N": Dim(0, 65536)},
    workloads=[{"M": 64, "K": 96, "N": 128}, {"M": 65, "K": 33, "N": 31}, {"M": 200, "K": 17, "N": 100},
               {"M": 5, "K": 1025, "N": 3}],
    contract=Contract(identifier="matmul", layouts="promised", empty="promised", special_values="promised",
                      accumulate="float32"),
    work=Work(bytes="(M*K+K*N+M*N)*itemsize", flops="2*M*N*K"),
)
