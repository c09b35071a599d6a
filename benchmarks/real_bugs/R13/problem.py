"""Cross entropy of each row of a linear layer's logits (reduction none), with the gradients of input and weight."""

import torch

from tilewright.task import Contract, Dim, Task, TensorSpec, integers


def reference(x, weight, labels):
    return torch.nn.functional.cross_entropy(x @ weight.T, labels, reduction="none")


TASK = Task(
    name="fused_linear_cross_entropy",
    reference=reference,
    inputs={
        "x": TensorSpec("B H", requires_grad=True),
        "weight": TensorSpec("V H", requires_grad=True),
        "labels": TensorSpec("B", dtypes="int64", values=integers(0, "V"), dtype_group="labels"),
    },
    dims={"B": Dim(1, 4096), "H": Dim(1, 1024), "V": Dim(2, 32768)},
    workloads=[{"B": 16, "H": 32, "V": 64}],
    contract=Contract(identifier="fused_linear_cross_entropy.none", gradients="promised", backward="once",
                      layouts="excluded",
                      special_values="excluded"),
)  # fmt: skip
