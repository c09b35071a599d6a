"""Mean cross entropy over rows whose label is not ignored; NaN when every row is ignored, as in PyTorch."""

import torch

from tilewright.task import Contract, Dim, Scalar, Task, TensorSpec, Work, integers


def reference(logits, labels, ignore_index):
    keep = labels != ignore_index
    picked = torch.log_softmax(logits, dim=-1).gather(1, labels[:, None]).squeeze(1)
    losses = torch.where(keep, -picked, torch.zeros_like(picked))
    return losses.sum() / keep.sum()


TASK = Task(
    name="cross_entropy_mean",
    reference=reference,
    inputs={
        "logits": TensorSpec("B V", dtypes=("float32", "float16")),
        "labels": TensorSpec("B", dtypes=("int64",), values=integers(0, "V"), dtype_group="labels"),
        "ignore_index": Scalar(-100, 0, 2),
    },
    outputs={"loss": TensorSpec("", dtypes=("float32", "float16"))},
    dims={"B": Dim(0, 65536), "V": Dim(1, 262144)},
    workloads=[
        {"B": 16, "V": 512},
        {"dims": {"B": 7, "V": 3}, "scalars": {"ignore_index": 2}},
        {"dims": {"B": 4, "V": 1}, "scalars": {"ignore_index": 0}},
        {"dims": {"B": 3, "V": 1025}, "scalars": {"ignore_index": 0}},
    ],
    contract=Contract(identifier="cross_entropy.mean", layouts="promised", empty="promised",
                      special_values="promised", accumulate="float32"),
    work=Work(bytes="B*V*itemsize+8*B", flops="4*B*V"),
)
