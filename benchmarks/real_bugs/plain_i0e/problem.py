"""The exponentially scaled modified Bessel function of order 0, element by element."""

import torch

from tilewright.task import Contract, Dim, Task, TensorSpec


def reference(x):
    return torch.special.i0e(x)


TASK = Task(
    name="special_i0e",
    reference=reference,
    inputs={"x": TensorSpec("N", dtypes=("float32", "float16"))},
    dims={"N": Dim(1, 1 << 24)},
    workloads=[{"N": 2000}],
    contract=Contract(identifier="special_i0e"),
)
