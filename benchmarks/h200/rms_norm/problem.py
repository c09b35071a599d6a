"""RMS normalisation of rows in bfloat16 at the size of an H200's baselines."""

import torch

from tilewright.task import Contract, Dim, Scalar, Task, TensorSpec, Work


def reference(x, weight, eps):
    return torch.nn.functional.rms_norm(x, weight.shape, weight, eps)


TASK = Task(
    name="rms_norm_8192",
    reference=reference,
    inputs={
        "x": TensorSpec("M N", dtypes=("bfloat16",)),
        "weight": TensorSpec("N", dtypes=("bfloat16",)),
        "eps": Scalar(1e-6),
    },
    outputs={"y": TensorSpec("M N", dtypes=("bfloat16",))},
    dims={"M": Dim(1, 8192), "N": Dim(1, 8192)},
    workloads=[{"M": 8192, "N": 8192}, {"M": 64, "N": 1000}],
    contract=Contract(identifier="rms_norm.rows", layouts="excluded", special_values="excluded", empty="excluded"),
    baselines=("liger_kernel.transformers.functional.liger_rms_norm",),
    work=Work(bytes="(2*M*N+N)*itemsize", flops="4*M*N"),
)
