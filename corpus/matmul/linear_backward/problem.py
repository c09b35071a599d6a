"""Linear layer y = x w^T + b with all three gradients."""

from tilewright.task import Contract, Dim, Task, TensorSpec


def reference(x, weight, bias):
    return x @ weight.T + bias


TASK = Task(
    name="linear_backward",
    reference=reference,
    inputs={
        "x": TensorSpec("M K", requires_grad=True),
        "weight": TensorSpec("N K", requires_grad=True),
        "bias": TensorSpec("N", requires_grad=True),
    },
    outputs={"y": TensorSpec("M N")},
    dims={"M": Dim(1, 16384), "K": Dim(1, 8192), "N": Dim(1, 8192)},
    workloads=[{"M": 32, "K": 64, "N": 32}, {"M": 33, "K": 20, "N": 17}, {"M": 70, "K": 5, "N": 3}],
    contract=Contract(identifier="linear.grad", gradients="promised", empty="excluded", special_values="excluded"),
)
