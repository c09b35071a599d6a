"""Whether each row holds a value above a threshold: a mark that many programs may set."""

import torch

from tilewright.task import Contract, Dim, Task, TensorSpec, integers


def reference(x):
    return (x > 900).any(1).to(torch.int32)


TASK = Task(
    name="rows with a large value",
    reference=reference,
    inputs={"x": TensorSpec("M N", dtypes=("int32",), values=integers(-1000, 1000))},
    outputs={"y": TensorSpec("M", dtypes=("int32",))},
    dims={"M": Dim(1, 4096), "N": Dim(1, 65536)},
    workloads=[{"M": 12, "N": 300}],
    contract=Contract(identifier="ir.rows_with_large"),
)
