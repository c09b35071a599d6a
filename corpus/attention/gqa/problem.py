"""Grouped-query attention: K key heads serve K R query heads; causal or not (query m sees keys 0 to m)."""

import math

import torch

from tilewright.task import Contract, Dim, Scalar, Task, TensorSpec, Work


def reference(q, k, v, causal):
    group = q.shape[1] // k.shape[1]
    k = k.repeat_interleave(group, dim=1)
    v = v.repeat_interleave(group, dim=1)
    scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
    if causal:
        hidden = torch.ones(scores.shape[-2:], dtype=torch.bool, device=q.device).triu(1)
        scores = scores.masked_fill(hidden, -math.inf)
    return torch.softmax(scores, dim=-1) @ v


TASK = Task(
    name="gqa",
    reference=reference,
    inputs={
        "q": TensorSpec("B K*R M D", dtypes=("float32", "float16")),
        "k": TensorSpec("B K N D", dtypes=("float32", "float16")),
        "v": TensorSpec("B K N D", dtypes=("float32", "float16")),
        "causal": Scalar(False, True),
    },
    outputs={"o": TensorSpec("B K*R M D", dtypes=("float32", "float16"))},
    dims={"B": Dim(1, 64), "K": Dim(1, 32), "R": Dim(1, 16), "M": Dim(1, 16384), "N": Dim(1, 16384),
          "D": Dim(1, 128)},
    workloads=[
        {"B": 2, "K": 2, "R": 2, "M": 32, "N": 64, "D": 32},
        {"dims": {"B": 1, "K": 2, "R": 3, "M": 37, "N": 37, "D": 16}, "scalars": {"causal": True}},
        {"dims": {"B": 2, "K": 1, "R": 2, "M": 20, "N": 70, "D": 24}, "scalars": {"causal": True}},
        {"B": 1, "K": 1, "R": 1, "M": 3, "N": 200, "D": 40},
    ],
    contract=Contract(identifier="attention.gqa", layouts="promised", empty="excluded", special_values="excluded",
                      accumulate="float32"),
    work=Work(bytes="2*B*K*(R*M+N)*D*itemsize", flops="4*B*K*R*M*N*D"),
)
