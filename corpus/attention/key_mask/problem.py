"""Attention under a mask of keys; a sequence without any valid key gives zeros."""

import math

import torch

from tilewright.task import Contract, Dim, Task, TensorSpec, Values


def reference(q, k, v, mask):
    scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
    valid = mask[:, None, None, :]
    p = torch.softmax(scores.masked_fill(~valid, -math.inf), dim=-1)
    return torch.where(valid.any(-1, keepdim=True), p, torch.zeros_like(p)) @ v


TASK = Task(
    name="attention_key_mask",
    reference=reference,
    inputs={
        "q": TensorSpec("B H M D"),
        "k": TensorSpec("B H N D"),
        "v": TensorSpec("B H N D"),
        "mask": TensorSpec("B N", dtypes=("bool",), values=Values(kind="bool", p=0.6), dtype_group="mask"),
    },
    outputs={"o": TensorSpec("B H M D")},
    dims={"B": Dim(1, 64), "H": Dim(1, 64), "M": Dim(1, 4096), "N": Dim(1, 4096), "D": Dim(1, 128)},
    workloads=[
        {"B": 2, "H": 2, "M": 16, "N": 64, "D": 32},
        {"B": 8, "H": 1, "M": 3, "N": 2, "D": 16},
        {"B": 2, "H": 1, "M": 17, "N": 45, "D": 20},
    ],
    contract=Contract(identifier="attention.key_mask", empty="excluded", special_values="excluded"),
)
