"""Jensen-Shannon loss between the logits of two linear layers, averaged over the rows whose label is not ignored."""

import torch

from tilewright.task import Contract, Dim, Task, TensorSpec, integers


def reference(student, student_weight, teacher, teacher_weight, labels):
    q = torch.log_softmax(student @ student_weight.T, -1)
    p = torch.log_softmax(teacher @ teacher_weight.T, -1)
    middle = torch.log(0.5 * (p.exp() + q.exp()))
    rows = 0.5 * (p.exp() * (p - middle) + q.exp() * (q - middle)).sum(-1)
    kept = labels != 0
    return (rows * kept).sum() / kept.sum().clamp(min=1)


TASK = Task(
    name="fused_linear_jsd",
    reference=reference,
    inputs={
        "student": TensorSpec("B H"),
        "student_weight": TensorSpec("V H"),
        "teacher": TensorSpec("B H"),
        "teacher_weight": TensorSpec("V H"),
        "labels": TensorSpec("B", dtypes="int64", values=integers(0, 3), dtype_group="labels"),
    },
    dims={"B": Dim(1, 4096), "H": Dim(1, 1024), "V": Dim(2, 32768)},
    workloads=[{"B": 64, "H": 16, "V": 64}],
    contract=Contract(identifier="fused_linear_jsd", layouts="excluded", special_values="excluded"),
)
