"""RMS normalisation of rows in bfloat16 at the size of an H200's baselines."""

import torch

from tilewright.task import Contract, Dim, Task, TensorSpec, Work


def reference(x, weight):
    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    scale = torch.rsqrt((wide * wide).mean(dim=-1, keepdim=True) + 1e-6)
    return (wide * scale * weight).to(x.dtype)


TASK = Task(
    name="rms_norm_8192",
    reference=reference,
    inputs={"x": TensorSpec("M N", dtypes=("bfloat16",)), "weight": TensorSpec("N", dtypes=("bfloat16",))},
    outputs={"y": TensorSpec("M N", dtypes=("bfloat16",))},
    dims={"M": Dim(1, 8192), "N": Dim(1, 8192)},
    workloads=[{"M": 64, "N": 1000}, {"M": 8192, "N": 8192}],
    contract=Contract(identifier="rms_norm.rows", layouts="excluded", special_values="excluded", empty="excluded"),
    work=Work(bytes="(2*M*N+N)*itemsize", flops="4*M*N"),
)
