"""Gradient of log-softmax from its result and the incoming gradient: the backward pass by itself."""

import torch

from tilewright.task import Contract, Dim, Scalar, Task, TensorSpec, Values, Work


def reference(dy, y, axis=-1, scale=1.0):
    return torch.ops.aten._log_softmax_backward_data(dy, y, axis, y.dtype) * scale


FLOATS = ("float32", "float16", "bfloat16")

TASK = Task(
    name="log_softmax_backward",
    reference=reference,
    inputs={
        "dy": TensorSpec("M N", dtypes=FLOATS),
        "y": TensorSpec("M N", dtypes=FLOATS, values=Values(kind="log_probabilities")),
        "axis": Scalar(-1, 0),
        "scale": Scalar(1.0, 0.125),
    },
    dims={"M": Dim(0, 1 << 20), "N": Dim(0, 1 << 20)},
    workloads=[
        {"M": 16, "N": 128},
        {"dims": {"M": 100, "N": 9}, "scalars": {"axis": 0, "scale": 0.125}},
        {"dims": {"M": 2, "N": 17000}, "dtype": "bfloat16"},
    ],
    contract=Contract(identifier="ops.log_softmax.backward", accumulate="float32"),
    work=Work(bytes="3*M*N*itemsize", flops="4*M*N"),
)
