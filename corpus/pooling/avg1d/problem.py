"""Average pooling over time, padding not counted."""

import torch

from tilewright.task import Contract, Dim, Scalar, Task, TensorSpec, Work


def reference(x, size, padding):
    return torch.nn.functional.avg_pool1d(x[None], size, stride=1, padding=padding, count_include_pad=False)[0]


TASK = Task(
    name="avg_pool1d",
    reference=reference,
    inputs={"x": TensorSpec("C T", dtypes=("float32", "bfloat16")), "size": Scalar(4, 3), "padding": Scalar(0, 1)},
    dims={"C": Dim(1, 1 << 14), "T": Dim(4, 1 << 14)},
    workloads=[{"C": 16, "T": 256}, {"C": 5, "T": 61}],
    contract=Contract(identifier="avg_pool1d.valid_count", special_values="excluded", batch_invariant=("C",)),
    work=Work(bytes="2*C*T*itemsize", flops="4*C*T"),
)
