"""RMS norm with an offset of the weight, and its gradients, as the operator promises them."""

import torch

from tilewright.task import Contract, Dim, Scalar, Task, TensorSpec, Work


def reference(x, weight, eps=1e-6, offset=0.0):
    wide = torch.promote_types(x.dtype, torch.float32)
    unit = x.to(wide) * torch.rsqrt(x.to(wide).square().mean(dim=-1, keepdim=True) + eps)
    return (unit * (weight.to(wide) + offset)).to(x.dtype)


FLOATS = ("float32", "float16", "bfloat16")

TASK = Task(
    name="rms_norm",
    reference=reference,
    inputs={
        "x": TensorSpec("M N", dtypes=FLOATS, requires_grad=True),
        "weight": TensorSpec("N", dtypes=FLOATS, requires_grad=True),
        "eps": Scalar(1e-6, 1e-2),
        "offset": Scalar(0.0, 1.0),
    },
    outputs={"y": TensorSpec("M N", dtypes=FLOATS)},
    dims={"M": Dim(0, 65536), "N": Dim(1, 16384)},
    workloads=[{"M": 16, "N": 128}, {"dims": {"M": 35, "N": 100}, "scalars": {"offset": 1.0}}, {"M": 2, "N": 2050}],
    contract=Contract(identifier="corpus.ops.rms_norm", gradients="promised", accumulate="float32"),
    work=Work(bytes="(2*M*N+N)*itemsize", flops="4*M*N"),
)
