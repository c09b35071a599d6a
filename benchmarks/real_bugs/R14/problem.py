"""Mean cross entropy of bfloat16 logits, with the gradient of the logits."""

import torch

from tilewright.task import Contract, Dim, Task, TensorSpec, integers, normal


def reference(logits, labels):
    return torch.nn.functional.cross_entropy(logits, labels)


TASK = Task(
    name="cross_entropy",
    reference=reference,
    inputs={
        "logits": TensorSpec("B V", dtypes="bfloat16", values=normal(0, 3), requires_grad=True),
        "labels": TensorSpec("B", dtypes="int64", values=integers(0, "V"), dtype_group="labels"),
    },
    dims={"B": Dim(1, 65536), "V": Dim(2, 131072)},
    workloads=[{"B": 16, "V": 100}],
    contract=Contract(identifier="cross_entropy.mean", gradients="promised", backward="once",
                      layouts="excluded",
                      special_values="excluded"),
)  # fmt: skip
