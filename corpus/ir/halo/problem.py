"""Each element plus its right neighbour: a stencil, which a kernel may be tempted to do in place."""

import torch

from tilewright.task import Contract, Dim, Task, TensorSpec


def reference(x):
    return x + torch.nn.functional.pad(x[1:], (0, 1))


TASK = Task(
    name="forward stencil",
    reference=reference,
    inputs={"x": TensorSpec("N", dtypes=("float32", "float16"))},
    outputs={"y": TensorSpec("N")},
    dims={"N": Dim(1, 1 << 26)},
    workloads=[{"N": 4000}],
    contract=Contract(identifier="ir.forward_stencil"),
)
