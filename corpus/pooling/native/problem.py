"""Maximum over windows of three along a row, stride one, for kernels in C; NaN propagates."""

import torch

from tilewright.task import Contract, Dim, Task, TensorSpec, Work


def reference(x):
    return torch.nn.functional.max_pool1d(x[None], 3, stride=1, padding=1)[0]


TASK = Task(
    name="max_pool1d_f32",
    reference=reference,
    inputs={"x": TensorSpec("R T")},
    outputs={"y": TensorSpec("R T")},
    dims={"R": Dim(1, 1 << 14), "T": Dim(2, 1 << 14)},
    workloads=[{"R": 16, "T": 128}, {"R": 3, "T": 17}],
    contract=Contract(identifier="max_pool1d.3", batch_invariant=("R",)),
    work=Work(bytes="2*R*T*itemsize", flops="3*R*T"),
)
