"""Layer norm over rows of any length, with a weight and no bias; with gradients."""

import torch

from tilewright.task import Contract, Dim, Scalar, Task, TensorSpec, Work


def reference(x, weight, eps=1e-5):
    wide = torch.promote_types(x.dtype, torch.float32)
    centred = x.to(wide) - x.to(wide).mean(dim=-1, keepdim=True)
    unit = centred * torch.rsqrt((centred * centred).mean(dim=-1, keepdim=True) + eps)
    return (unit * weight.to(wide)).to(x.dtype)


FLOATS = ("float32", "float16", "bfloat16")

TASK = Task(
    name="layer_norm_unbiased",
    reference=reference,
    inputs={
        "x": TensorSpec("M N", dtypes=FLOATS, requires_grad=True),
        "weight": TensorSpec("N", dtypes=FLOATS, requires_grad=True),
        "eps": Scalar(1e-5, 1e-2),
    },
    outputs={"y": TensorSpec("M N", dtypes=FLOATS)},
    dims={"M": Dim(0, 1 << 24), "N": Dim(1, 1 << 20)},
    workloads=[
        {"M": 16, "N": 128},
        {"dims": {"M": 5, "N": 257}, "scalars": {"eps": 1e-2}},
        {"dims": {"M": 2, "N": 33000}, "dtype": "bfloat16"},
    ],
    contract=Contract(
        identifier="ops.layer_norm.unbiased", gradients="promised", accumulate="float32", batch_invariant=("M",),
    ),
    work=Work(bytes="(2*M*N+N)*itemsize", flops="5*M*N"),
)  # fmt: skip
