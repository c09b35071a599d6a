"""Dropout with the seed as an argument: equal in distribution, repeatable at one seed."""

import torch

from tilewright.task import Contract, Dim, Scalar, Task, TensorSpec, Work


def reference(x, p, seed):
    generator = torch.Generator(device=x.device).manual_seed(seed)
    keep = torch.rand(x.shape, generator=generator, device=x.device) >= p
    return torch.where(keep, x / (1.0 - p), torch.zeros_like(x))


TASK = Task(
    name="dropout_seeded",
    reference=reference,
    inputs={"x": TensorSpec("M N"), "p": Scalar(0.5, 0.1), "seed": Scalar(1, 2, 77)},
    outputs={"y": TensorSpec("M N")},
    dims={"M": Dim(1, 1 << 16), "N": Dim(1, 1 << 14)},
    workloads=[{"M": 64, "N": 512}, {"M": 33, "N": 129}],
    contract=Contract(
        identifier="dropout.seeded", random=True, postcondition="distribution", special_values="excluded"
    ),
    work=Work(bytes="2*M*N*itemsize", flops="4*M*N"),
)
