"""Rotary embedding, halves rotated, positions given per sequence."""

import torch

from tilewright.task import Contract, Dim, Task, TensorSpec, Work, integers


def reference(x, cos, sin, positions):
    c = cos[positions][:, None]
    s = sin[positions][:, None]
    a, b = x.chunk(2, dim=-1)
    return torch.cat((a * c - b * s, b * c + a * s), dim=-1)


FLOATS = ("float32", "float16", "bfloat16")

TASK = Task(
    name="rope_positions",
    reference=reference,
    inputs={
        "x": TensorSpec(("B", "H", "S", "2*D"), dtypes=FLOATS),
        "cos": TensorSpec("P D", dtypes=FLOATS),
        "sin": TensorSpec("P D", dtypes=FLOATS),
        "positions": TensorSpec("B S", dtypes=("int64",), values=integers(0, "P"), dtype_group="index"),
    },
    outputs={"y": TensorSpec(("B", "H", "S", "2*D"))},
    dims={"B": Dim(1, 256), "H": Dim(1, 128), "S": Dim(1, 8192), "D": Dim(1, 128), "P": Dim(1, 1 << 17)},
    workloads=[{"B": 1, "H": 4, "S": 32, "D": 32, "P": 64}, {"B": 3, "H": 2, "S": 5, "D": 24, "P": 40}],
    contract=Contract(identifier="rope.half", special_values="excluded", batch_invariant=("B",)),
    work=Work(bytes="4*B*H*S*D*itemsize", flops="6*B*H*S*D"),
)
