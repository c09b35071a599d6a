"""Group norm with weight and bias, and its gradients, as the operator promises them."""

import math

import torch

from tilewright.task import Contract, Dim, Scalar, Task, TensorSpec, Work


def reference(x, groups, weight, bias, eps=1e-5):
    wide = torch.promote_types(x.dtype, torch.float32)
    rows = x.to(wide).reshape(x.shape[0], groups, math.prod(x.shape[1:]) // groups)
    centred = rows - rows.mean(dim=-1, keepdim=True)
    unit = (centred * torch.rsqrt(centred.square().mean(dim=-1, keepdim=True) + eps)).reshape(x.shape)
    return (unit * weight.to(wide)[:, None] + bias.to(wide)[:, None]).to(x.dtype)


FLOATS = ("float32", "float16", "bfloat16")

TASK = Task(
    name="group_norm",
    reference=reference,
    inputs={
        "x": TensorSpec("N 4*K S", dtypes=FLOATS, requires_grad=True),
        "groups": Scalar(4, 1, 2),
        "weight": TensorSpec("4*K", dtypes=FLOATS, requires_grad=True),
        "bias": TensorSpec("4*K", dtypes=FLOATS, requires_grad=True),
        "eps": Scalar(1e-5, 1e-2),
    },
    outputs={"y": TensorSpec("N 4*K S", dtypes=FLOATS)},
    dims={"N": Dim(0, 4096), "K": Dim(1, 256), "S": Dim(1, 16384)},
    workloads=[
        {"N": 2, "K": 3, "S": 64},
        {"dims": {"N": 3, "K": 5, "S": 17}, "scalars": {"groups": 2, "eps": 1e-2}},
        {"dims": {"N": 1, "K": 1, "S": 5000}, "scalars": {"groups": 1}},
    ],
    contract=Contract(identifier="corpus.ops.group_norm", gradients="promised", accumulate="float32"),
    work=Work(bytes="(2*N*4*K*S+8*K)*itemsize", flops="6*N*4*K*S"),
)
