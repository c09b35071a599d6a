"""Index of the greatest value of each row; the first of equals; NaN counts as greatest."""

import torch

from tilewright.task import Contract, Dim, Task, TensorSpec, Work


def reference(x):
    return torch.argmax(x, dim=-1)


TASK = Task(
    name="argmax_rows",
    reference=reference,
    inputs={"x": TensorSpec("M N", dtypes=("float32", "float16"))},
    outputs={"index": TensorSpec("M", dtypes=("int64",))},
    dims={"M": Dim(1, 1 << 16), "N": Dim(1, 4096)},
    workloads=[{"M": 64, "N": 256}, {"M": 9, "N": 100}],
    contract=Contract(identifier="argmax.rows", batch_invariant=("M",)),
    work=Work(bytes="M*N*itemsize+8*M", flops="M*N"),
)
