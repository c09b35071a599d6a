"""Softmax over the last axis of a matrix; rows of -inf give NaN, as in PyTorch."""

import torch

from tilewright.task import Contract, Dim, Task, TensorSpec, Work


def reference(x):
    return torch.softmax(x, dim=-1)


TASK = Task(
    name="softmax",
    reference=reference,
    inputs={"x": TensorSpec("M N", dtypes=("float32", "float16", "bfloat16"))},
    outputs={"y": TensorSpec("M N", dtypes=("float32", "float16", "bfloat16"))},
    dims={"M": Dim(0, 65536), "N": Dim(0, 65536)},
    workloads=[{"M": 16, "N": 256}, {"M": 3, "N": 1000}, {"M": 1, "N": 2049}],
    contract=Contract(identifier="softmax.last", layouts="promised", empty="promised", special_values="promised"),
    work=Work(bytes="2*M*N*itemsize", flops="5*M*N"),
    baselines=("eager", "torch.compile"),
)
