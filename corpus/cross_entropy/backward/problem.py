"""Cross entropy per row (reduction none) with the gradient of the logits; ignored rows give loss 0 and gradient 0."""

import torch

from tilewright.task import Contract, Dim, Scalar, Task, TensorSpec, Values, integers


def reference(logits, labels, ignore_index):
    wide = logits.to(torch.promote_types(logits.dtype, torch.float32))  # as models do: half precision only in and out
    picked = torch.log_softmax(wide, dim=-1).gather(1, labels[:, None]).squeeze(1)
    return torch.where(labels != ignore_index, -picked, torch.zeros_like(picked)).to(logits.dtype)


TASK = Task(
    name="cross_entropy_backward",
    reference=reference,
    inputs={
        "logits": TensorSpec("B V", dtypes=("float32", "float16"), values=Values(std=3.0), requires_grad=True),
        "labels": TensorSpec("B", dtypes=("int64",), values=integers(0, "V"), dtype_group="labels"),
        "ignore_index": Scalar(-100, 0),
    },
    outputs={"losses": TensorSpec("B", dtypes=("float32", "float16"))},
    dims={"B": Dim(1, 65536), "V": Dim(2, 65536)},
    workloads=[
        {"B": 12, "V": 100},
        {"dims": {"B": 9, "V": 4}, "scalars": {"ignore_index": 0}},
        {"dims": {"B": 3, "V": 257}, "scalars": {"ignore_index": 0}},
    ],
    contract=Contract(identifier="cross_entropy.none.grad", gradients="promised", empty="excluded",
                      special_values="excluded"),
)
