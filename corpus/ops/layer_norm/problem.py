"""Layer norm with weight and bias, and its gradients, as the operator promises them."""

import torch

from tilewright.task import Contract, Dim, Scalar, Task, TensorSpec, Work


def reference(x, weight, bias, eps=1e-5):
    wide = torch.promote_types(x.dtype, torch.float32)
    centred = x.to(wide) - x.to(wide).mean(dim=-1, keepdim=True)
    unit = centred * torch.rsqrt(centred.square().mean(dim=-1, keepdim=True) + eps)
    return (unit * weight.to(wide) + bias.to(wide)).to(x.dtype)


FLOATS = ("float32", "float16", "bfloat16")

TASK = Task(
    name="layer_norm",
    reference=reference,
    inputs={
        "x": TensorSpec("M N", dtypes=FLOATS, requires_grad=True),
        "weight": TensorSpec("N", dtypes=FLOATS, requires_grad=True),
        "bias": TensorSpec("N", dtypes=FLOATS, requires_grad=True),
        "eps": Scalar(1e-5, 1e-2),
    },
    outputs={"y": TensorSpec("M N", dtypes=FLOATS)},
    dims={"M": Dim(0, 65536), "N": Dim(1, 16384)},
    workloads=[{"M": 16, "N": 128}, {"dims": {"M": 35, "N": 100}, "scalars": {"eps": 1e-2}}, {"M": 2, "N": 2050}],
    contract=Contract(identifier="corpus.ops.layer_norm", gradients="promised", accumulate="float32"),
    work=Work(bytes="(2*M*N+2*N)*itemsize", flops="6*M*N"),
)
