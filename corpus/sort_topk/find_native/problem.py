"""Where a key stands first in each row of integers, and N where it does not; for kernels in C."""

import torch

from tilewright.task import Contract, Dim, Task, TensorSpec, Work, integers


def reference(x, key):
    found = x == key[:, None]
    places = torch.arange(x.shape[1]).expand_as(x)
    return torch.where(found, places, x.shape[1]).amin(1) if x.shape[1] else torch.zeros_like(key, dtype=torch.int64)


TASK = Task(
    name="find_first_i32",
    reference=reference,
    inputs={
        "x": TensorSpec("M N", dtypes=("int32",), values=integers(0, 40), dtype_group="x"),
        "key": TensorSpec("M", dtypes=("int32",), values=integers(0, 40), dtype_group="x"),
    },
    outputs={"place": TensorSpec("M", dtypes=("int64",), dtype_group="place")},
    dims={"M": Dim(1, 1 << 16), "N": Dim(1, 1 << 16)},
    workloads=[{"M": 32, "N": 48}, {"M": 5, "N": 17}],
    contract=Contract(identifier="find_first", batch_invariant=("M",)),
    work=Work(bytes="4*M*N+4*M+8*M", flops="M*N"),
)
