"""Linear recurrence h_t = a_t h_(t-1) + b_t along the last axis, h_(-1) = 0, with gradients."""

import torch

from tilewright.task import Contract, Dim, Task, TensorSpec, uniform


def reference(a, b):
    h = torch.zeros_like(b[:, 0])
    states = []
    for t in range(b.shape[1]):
        h = a[:, t] * h + b[:, t]
        states.append(h)
    return torch.stack(states, dim=1)


TASK = Task(
    name="recurrence",
    reference=reference,
    inputs={
        "a": TensorSpec("C T", values=uniform(0.0, 1.0), requires_grad=True),
        "b": TensorSpec("C T", requires_grad=True),
    },
    outputs={"h": TensorSpec("C T")},
    dims={"C": Dim(1, 65536), "T": Dim(1, 4096)},
    workloads=[{"C": 32, "T": 24}, {"C": 7, "T": 33}, {"C": 65, "T": 2}],
    contract=Contract(identifier="recurrence.grad", gradients="promised", empty="excluded", special_values="excluded"),
)
