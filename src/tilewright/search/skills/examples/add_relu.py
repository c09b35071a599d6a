"""The positive part of a sum, on which skills are verified."""

import torch

from tilewright.task import Contract, Dim, Task, TensorSpec, Work, Workload


def reference(x, y):
    return torch.relu(x + y)


TASK = Task(
    name="add_relu",
    reference=reference,
    inputs={"x": TensorSpec("N", dtypes=("float32", "float16")), "y": TensorSpec("N", dtypes=("float32", "float16"))},
    outputs={"z": TensorSpec("N", dtypes=("float32", "float16"))},
    dims={"N": Dim(0, 1 << 20)},
    workloads=(Workload(dims={"N": 1000}),),
    contract=Contract(identifier="add_relu"),
    work=Work(bytes="3*N*itemsize", flops="2*N"),
)
