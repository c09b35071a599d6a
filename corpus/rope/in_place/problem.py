"""Rotary embedding of q and k with a shared table, both rotated in place by contract."""

import torch

from tilewright.task import Contract, Dim, Task, TensorSpec, Work


def _rotate(x, cos, sin):
    a, b = x.chunk(2, dim=-1)
    x.copy_(torch.cat((a * cos - b * sin, b * cos + a * sin), dim=-1))


def reference(q, k, cos, sin):
    _rotate(q, cos[:, None], sin[:, None])
    _rotate(k, cos[:, None], sin[:, None])
    return q, k


TASK = Task(
    name="rope_in_place",
    reference=reference,
    inputs={
        "q": TensorSpec(("T", "H", "2*D"), mutated=True),
        "k": TensorSpec(("T", "G", "2*D"), mutated=True),
        "cos": TensorSpec("T D"),
        "sin": TensorSpec("T D"),
    },
    dims={"T": Dim(1, 1 << 16), "H": Dim(1, 128), "G": Dim(1, 128), "D": Dim(1, 128)},
    workloads=[{"T": 40, "H": 4, "G": 4, "D": 32}, {"T": 7, "H": 6, "G": 2, "D": 20}],
    contract=Contract(identifier="rope.in_place", aliasing="allowed", special_values="excluded", layouts="excluded"),
    work=Work(bytes="4*T*(H+G)*D*itemsize", flops="6*T*(H+G)*D"),
)
