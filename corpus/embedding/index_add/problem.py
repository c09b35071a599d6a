"""Scatter-add of rows into a table of zeros; the order of addition is free."""

import torch

from tilewright.task import Contract, Dim, Task, TensorSpec, Work, integers


def reference(src, index, bias):
    out = bias.clone()
    return out.index_add_(0, index, src)


TASK = Task(
    name="index_add",
    reference=reference,
    inputs={
        "src": TensorSpec("T D"),
        "index": TensorSpec("T", dtypes=("int64",), values=integers(0, "V"), dtype_group="index"),
        "bias": TensorSpec("V D"),
    },
    outputs={"out": TensorSpec("V D")},
    dims={"T": Dim(1, 1 << 16), "V": Dim(1, 1 << 16), "D": Dim(1, 4096)},
    workloads=[{"T": 128, "V": 48, "D": 64}, {"T": 20, "V": 5, "D": 33}],
    contract=Contract(identifier="index_add", determinism="none", special_values="excluded"),
    work=Work(bytes="(T*D+2*V*D)*itemsize+8*T", flops="T*D"),
)
