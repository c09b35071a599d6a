"""Cross entropy of a language model's logits in bfloat16 at the size of an H200's baselines: forward, mean over the rows."""

import torch

from tilewright.task import Contract, Dim, Task, TensorSpec, Values, Work


def reference(logits, target):
    return torch.nn.functional.cross_entropy(logits, target)


TASK = Task(
    name="cross_entropy_128256",
    reference=reference,
    inputs={
        "logits": TensorSpec("M V", dtypes=("bfloat16",)),
        "target": TensorSpec(
            "M", dtypes=("int64",), values=Values(kind="integers", low=0, high="V"), dtype_group="index"
        ),
    },
    outputs={"loss": TensorSpec("", dtypes=("bfloat16",))},
    dims={"M": Dim(1, 8192), "V": Dim(2, 131072)},
    workloads=[{"M": 8192, "V": 128256}, {"M": 512, "V": 32000}],
    contract=Contract(identifier="cross_entropy.mean", layouts="excluded", special_values="excluded", empty="excluded"),
    baselines=("liger_kernel.transformers.functional.liger_cross_entropy",),
    work=Work(bytes="M*V*itemsize + 8*M", flops="4*M*V"),
)
