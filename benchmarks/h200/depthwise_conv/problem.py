"""Depthwise 7 × 7 convolution in float16, as in the blocks of a ConvNeXt, at the size of an H200's baselines."""

import torch

from tilewright.task import Contract, Dim, Task, TensorSpec, Work


def reference(x, weight):
    return torch.nn.functional.conv2d(x, weight, padding=3, groups=x.shape[1])


TASK = Task(
    name="depthwise_conv_7x7",
    reference=reference,
    inputs={"x": TensorSpec("B C H W", dtypes=("float16",)), "weight": TensorSpec("C 1 7 7", dtypes=("float16",))},
    outputs={"y": TensorSpec("B C H W", dtypes=("float16",))},
    dims={"B": Dim(1, 32), "C": Dim(1, 384), "H": Dim(1, 128), "W": Dim(1, 128)},
    workloads=[{"B": 32, "C": 384, "H": 56, "W": 56}, {"B": 1, "C": 96, "H": 28, "W": 30}],
    contract=Contract(identifier="conv.depthwise_7x7", layouts="excluded", special_values="excluded", empty="excluded"),
    baselines=("channels_last.py",),
    work=Work(bytes="2*B*C*H*W*itemsize + 49*C*itemsize", flops="98*B*C*H*W"),
)
