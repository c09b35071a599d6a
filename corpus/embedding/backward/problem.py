"""Gradient of an embedding table: rows summed by index, the padding row left at zero."""

import torch

from tilewright.task import Contract, Dim, Scalar, Task, TensorSpec, Work, integers


def reference(index, grad, vocab_like, padding_idx):
    out = torch.zeros_like(vocab_like)
    out.index_add_(0, index, grad)
    out[padding_idx] = 0
    return out


TASK = Task(
    name="embedding_backward",
    reference=reference,
    inputs={
        "index": TensorSpec("T", dtypes=("int64",), values=integers(0, "V"), dtype_group="index"),
        "grad": TensorSpec("T D"),
        "vocab_like": TensorSpec("V D"),
        "padding_idx": Scalar(0, -1),
    },
    outputs={"grad_weight": TensorSpec("V D")},
    dims={"T": Dim(1, 1 << 14), "V": Dim(1, 1 << 16), "D": Dim(1, 1024)},
    workloads=[{"T": 24, "V": 20000, "D": 4}, {"T": 60, "V": 12, "D": 20}],
    contract=Contract(identifier="embedding.backward", special_values="excluded"),
    work=Work(bytes="(T*D+V*D)*itemsize+8*T", flops="T*D"),
)
