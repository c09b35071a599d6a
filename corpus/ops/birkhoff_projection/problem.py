"""Sinkhorn's iteration on small square matrices, and its gradient, as the operator promises them."""

import torch

from tilewright.task import Contract, Dim, Scalar, Task, TensorSpec, Work


def reference(x, iterations):
    y = x.to(torch.promote_types(x.dtype, torch.float32))
    for _ in range(iterations):
        y = y - torch.logsumexp(y, -1, keepdim=True)
        y = y - torch.logsumexp(y, -2, keepdim=True)
    return torch.exp(y).to(x.dtype)


FLOATS = ("float32", "float16", "bfloat16")

TASK = Task(
    name="sinkhorn",
    reference=reference,
    inputs={"x": TensorSpec("B N N", dtypes=FLOATS, requires_grad=True), "iterations": Scalar(5, 1)},
    outputs={"y": TensorSpec("B N N", dtypes=FLOATS)},
    dims={"B": Dim(0, 1 << 20), "N": Dim(2, 8)},
    workloads=[{"B": 40, "N": 4}, {"B": 131, "N": 3}],
    contract=Contract(identifier="corpus.ops.birkhoff", gradients="promised", batch_invariant=("B",)),
    work=Work(bytes="2*B*N*N*itemsize", flops="50*B*N*N"),
)
