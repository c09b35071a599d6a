"""Squared error of each row, one loss a row, with gradients promised."""

from tilewright.task import Contract, Dim, Task, TensorSpec, Work


def reference(pred, target):
    return ((pred - target) ** 2).mean(-1)


TASK = Task(
    name="row_mse",
    reference=reference,
    inputs={"pred": TensorSpec("M N", requires_grad=True), "target": TensorSpec("M N", requires_grad=True)},
    outputs={"loss": TensorSpec("M")},
    dims={"M": Dim(1, 1 << 16), "N": Dim(1, 1 << 14)},
    workloads=[{"M": 32, "N": 256}, {"M": 5, "N": 77}],
    contract=Contract(identifier="row_mse", gradients="promised", batch_invariant=("M",)),
    work=Work(bytes="(2*M*N+M)*itemsize", flops="3*M*N"),
)
