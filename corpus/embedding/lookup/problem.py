"""Embedding lookup; tables may hold more than 2**31 elements."""

import torch

from tilewright.task import Contract, Dim, Task, TensorSpec, Work, integers


def reference(index, weight):
    return torch.nn.functional.embedding(index, weight)


TASK = Task(
    name="embedding",
    reference=reference,
    inputs={
        "index": TensorSpec("T", dtypes=("int64", "int32"), values=integers(0, "V"), dtype_group="index"),
        "weight": TensorSpec("V D", dtypes=("float32", "float16", "bfloat16")),
    },
    outputs={"y": TensorSpec("T D")},
    dims={"T": Dim(0, 1 << 20), "V": Dim(1, 1 << 22), "D": Dim(1, 8192)},
    workloads=[{"T": 64, "V": 500, "D": 128}, {"T": 17, "V": 31, "D": 100}],
    contract=Contract(identifier="embedding", batch_invariant=("T",)),
    work=Work(bytes="2*T*D*itemsize+8*T"),
)
