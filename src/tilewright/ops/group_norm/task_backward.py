"""Gradients of group norm from the input, what forward kept and the incoming gradient: the backward pass by itself.

A channel's gradients are summed before they are weighted, so a weight that is not finite gives other NaN and Inf.
"""

import math

import torch

from tilewright.task import Contract, Dim, Scalar, Task, TensorSpec, Values, Work


def reference(dy, x, stats, groups, weight):
    wide = torch.promote_types(x.dtype, torch.float32)
    rows = (x.shape[0], groups, math.prod(x.shape[1:]) // groups)
    mean, scale = (stats[:, i].reshape(x.shape[0], groups, 1) for i in (0, 1))
    unit, g = (x.to(wide).reshape(rows) - mean) * scale, dy.to(wide)
    of = (g * weight.to(wide)[:, None]).reshape(rows)
    dx = (of - of.mean(-1, keepdim=True) - unit * (of * unit).mean(-1, keepdim=True)) * scale
    dw = (g * unit.reshape(x.shape)).sum((0, 2))
    return dx.reshape(x.shape).to(x.dtype), dw.to(weight.dtype), g.sum((0, 2)).to(weight.dtype)


FLOATS = ("float32", "float16", "bfloat16")

TASK = Task(
    name="group_norm_backward",
    reference=reference,
    inputs={
        "dy": TensorSpec("N 4*K S", dtypes=FLOATS),
        "x": TensorSpec("N 4*K S", dtypes=FLOATS),
        "stats": TensorSpec(
            "N*4 2", values=Values(kind="uniform", low=0.5, high=2.0), dtype_group="kept", layouts="contiguous"
        ),
        "groups": Scalar(4),
        "weight": TensorSpec("4*K", dtypes=FLOATS),
    },
    dims={"N": Dim(0, 1 << 16), "K": Dim(1, 1 << 12), "S": Dim(1, 1 << 20)},
    workloads=[{"N": 2, "K": 3, "S": 64}, {"dims": {"N": 1, "K": 1, "S": 5000}, "dtype": "bfloat16"}],
    contract=Contract(identifier="ops.group_norm.backward", accumulate="float32", special_values="excluded"),
    work=Work(bytes="(12*N*K*S+12*K)*itemsize + 32*N", flops="40*N*K*S"),
)
