"""A step of diffusion on a grid with a cold border, for searches on the CPU."""

import torch

from tilewright.task import Contract, Dim, Task, TensorSpec, Work


def reference(x):
    p = torch.nn.functional.pad(x, (1, 1, 1, 1))
    around = (p[:-2, 1:-1] + p[2:, 1:-1]) + (p[1:-1, :-2] + p[1:-1, 2:])
    return 0.5 * x + 0.125 * around


TASK = Task(
    name="search_stencil",
    reference=reference,
    inputs={"x": TensorSpec("M N")},
    outputs={"y": TensorSpec("M N")},
    dims={"M": Dim(0, 16384), "N": Dim(0, 16384)},
    workloads=[{"M": 500, "N": 500}, {"M": 128, "N": 1500}],
    contract=Contract(identifier="search_stencil"),
    work=Work(bytes="2*M*N*itemsize", flops="6*M*N"),
)
