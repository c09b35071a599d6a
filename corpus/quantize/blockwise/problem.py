"""Absolute maximum of each block of 64 values, and the values divided by it (0 for a block of zeros)."""

import torch

from tilewright.task import Contract, Dim, Task, TensorSpec, Work


def reference(x):
    absmax = x.abs().amax(-1)
    safe = torch.where(absmax > 0, absmax, torch.ones_like(absmax))
    return x / safe[:, None], absmax


TASK = Task(
    name="blockwise_absmax",
    reference=reference,
    inputs={"x": TensorSpec("B 64")},
    outputs={"scaled": TensorSpec("B 64"), "absmax": TensorSpec("B")},
    dims={"B": Dim(1, 1 << 22)},
    workloads=[{"B": 64}, {"B": 10}],
    contract=Contract(identifier="blockwise.absmax", special_values="excluded", batch_invariant=("B",)),
    work=Work(bytes="(2*64*B+B)*itemsize", flops="128*B"),
)
