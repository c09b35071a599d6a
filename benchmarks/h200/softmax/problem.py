"""Row softmax in bfloat16 at the size of an H200's baselines."""

import torch

from tilewright.task import Contract, Dim, Task, TensorSpec, Work


def reference(x):
    return torch.softmax(x, dim=-1)


TASK = Task(
    name="softmax_8192",
    reference=reference,
    inputs={"x": TensorSpec("M N", dtypes=("bfloat16",))},
    outputs={"y": TensorSpec("M N", dtypes=("bfloat16",))},
    dims={"M": Dim(1, 32768), "N": Dim(1, 32768)},
    workloads=[{"M": 8192, "N": 8192}, {"M": 4096, "N": 32768}, {"M": 32768, "N": 2048}, {"M": 64, "N": 1000}],
    contract=Contract(identifier="softmax.rows", layouts="excluded", special_values="excluded", empty="excluded"),
    baselines=("liger_kernel.transformers.functional.liger_softmax",),
    work=Work(bytes="2*M*N*itemsize", flops="5*M*N"),
)
