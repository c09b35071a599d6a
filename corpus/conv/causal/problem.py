"""Causal depthwise 1-d convolution with bias and SiLU, as in state-space models."""

import torch

from tilewright.task import Contract, Dim, Task, TensorSpec, Work


def reference(x, weight, bias):
    k = weight.shape[-1]
    padded = torch.nn.functional.pad(x, (k - 1, 0))
    y = torch.nn.functional.conv1d(padded, weight[:, None], bias, groups=weight.shape[0])
    return torch.nn.functional.silu(y)


def causal(run, inputs):
    """Changing the last element of each sequence changes nothing before it."""
    x = inputs["x"].clone()
    x[..., -1] += 1.0
    before, after = run(**inputs), run(**{**inputs, "x": x})
    return bool(torch.equal(before[..., :-1], after[..., :-1]))


TASK = Task(
    name="causal_conv1d",
    reference=reference,
    inputs={
        "x": TensorSpec("B C T", dtypes=("float32", "float16")),
        "weight": TensorSpec("C K", dtypes=("float32", "float16")),
        "bias": TensorSpec("C", dtypes=("float32", "float16")),
    },
    outputs={"y": TensorSpec("B C T")},
    dims={"B": Dim(1, 512), "C": Dim(1, 8192), "T": Dim(1, 1 << 16), "K": Dim(sizes=(2, 3, 4))},
    workloads=[{"B": 2, "C": 8, "T": 128, "K": 4}, {"B": 1, "C": 3, "T": 70, "K": 3}],
    contract=Contract(identifier="causal_conv1d.silu", special_values="excluded", batch_invariant=("B",)),
    laws={"causal": causal},
    work=Work(bytes="2*B*C*T*itemsize", flops="2*B*C*T*K"),
)
