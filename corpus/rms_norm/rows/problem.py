"""RMS normalisation over the last axis, with weight."""

import torch

from tilewright.task import Contract, Dim, Scalar, Task, TensorSpec, Work


def reference(x, weight, eps):
    wide = x if x.dtype == torch.float64 else x.float()
    scale = torch.rsqrt((wide * wide).mean(dim=-1, keepdim=True) + eps)
    return (wide * scale * weight).to(x.dtype)


TASK = Task(
    name="rms_norm",
    reference=reference,
    inputs={
        "x": TensorSpec("M N", dtypes=("float32", "float16", "bfloat16")),
        "weight": TensorSpec("N", dtypes=("float32", "float16", "bfloat16")),
        "eps": Scalar(1e-6, 1e-2),
    },
    outputs={"y": TensorSpec("M N", dtypes=("float32", "float16", "bfloat16"))},
    dims={"M": Dim(0, 65536), "N": Dim(1, 32768)},
    workloads=[{"M": 16, "N": 512}, {"M": 3, "N": 100}, {"M": 2, "N": 1025}],
    contract=Contract(identifier="rms_norm", layouts="promised", empty="promised", special_values="promised",
                      accumulate="float32"),
    work=Work(bytes="(2*M*N+N)*itemsize", flops="4*M*N"),
)
