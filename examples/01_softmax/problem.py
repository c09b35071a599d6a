"""Row softmax of a matrix, any row length, float32 and half precisions."""

import torch

from tilewright.task import Contract, Dim, Task, TensorSpec, Work


def reference(x):
    return torch.softmax(x, dim=-1)


TASK = Task(
    name="softmax",
    reference=reference,
    inputs={"x": TensorSpec("M N", dtypes=("float32", "float16", "bfloat16"))},
    outputs={"y": TensorSpec("M N")},
    dims={"M": Dim(0, 1 << 20), "N": Dim(1, 65536)},
    workloads=[{"M": 128, "N": 1024}],
    contract=Contract(identifier="softmax.rows", postcondition="equal", nan="propagate", batch_invariant=("M",)),
    work=Work(bytes="2*M*N*itemsize", flops="5*M*N"),
)
