"""Squared ReLU; its gradient as autograd computes it, from the input."""

import torch
from common import Kernel, half, task

from tilewright.task import Dim


def reference(x):
    return torch.relu(x).square()


def gradient(dy, x):
    r = torch.relu(x)
    return torch.ops.aten.threshold_backward(dy * (2 * r), r, 0)


DIMS = {"M": Dim(1, 1 << 20), "N": Dim(1, 1 << 16)}
SMALL = [{"M": 16, "N": 128}, {"M": 3, "N": 1000}]

FORWARD = task(
    "relu_squared.forward", reference, {"x": half("M N")}, DIMS, SMALL, moved="2*M*N*itemsize", flops="2*M*N",
    peers=("liger_kernel.ops.relu_squared.relu_squared_forward", "fla.modules.activations.sqrelu"),
)  # fmt: skip
BACKWARD = task(
    "relu_squared.backward", gradient, {"dy": half("M N"), "x": half("M N")}, DIMS, SMALL, moved="3*M*N*itemsize",
    flops="3*M*N", peers=("h200_peers.liger_relu_squared_backward",),
)  # fmt: skip

KERNELS = {"forward": Kernel("relu_squared", "kernel"), "backward": Kernel("relu_squared", "backward")}
GRID = {
    "headline": [{"M": 8192, "N": 11008}, {"M": 8192, "N": 16384}],
    "more": [{"M": 16, "N": 11008}, {"M": 1000, "N": 5003}, {"M": 4096, "N": 28672}],
}
