"""Largest element of each row and where it is first met; NaN wins over every number, as in PyTorch."""

import torch

from tilewright.task import Contract, Dim, Task, TensorSpec


def reference(x):
    values, indices = torch.max(x, dim=-1)
    return {"values": values, "indices": indices}


TASK = Task(
    name="max_argmax",
    reference=reference,
    inputs={"x": TensorSpec("M N", dtypes=("float32", "float16"))},
    outputs={
        "values": TensorSpec("M", dtypes=("float32", "float16")),
        "indices": TensorSpec("M", dtypes=("int64",), dtype_group="indices"),
    },
    dims={"M": Dim(0, 65536), "N": Dim(1, 65536)},
    workloads=[{"M": 32, "N": 100}, {"M": 5, "N": 300}, {"M": 2, "N": 1}],
    contract=Contract(identifier="max.last", layouts="promised", empty="promised", special_values="promised",
                      nan="propagate"),
)
