"""SwiGLU in bfloat16 at the size of an H200's baselines: the first half gates the second."""

import torch

from tilewright.task import Contract, Dim, Task, TensorSpec, Work


def reference(gate, up):
    return torch.nn.functional.silu(gate) * up


TASK = Task(
    name="swiglu_8192",
    reference=reference,
    inputs={"gate": TensorSpec("M N", dtypes=("bfloat16",)), "up": TensorSpec("M N", dtypes=("bfloat16",))},
    outputs={"y": TensorSpec("M N", dtypes=("bfloat16",))},
    dims={"M": Dim(1, 8192), "N": Dim(1, 11008)},
    workloads=[{"M": 8192, "N": 11008}, {"M": 64, "N": 1000}],
    contract=Contract(identifier="swiglu", layouts="excluded", special_values="excluded", empty="excluded"),
    baselines=("liger_kernel.transformers.functional.liger_swiglu",),
    work=Work(bytes="3*M*N*itemsize", flops="6*M*N"),
)
