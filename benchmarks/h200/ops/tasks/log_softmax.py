"""Log-softmax of rows; its gradient as autograd computes it, from the result."""

import torch
from common import Kernel, half, task

from tilewright.task import Dim, Values


def reference(x):
    return torch.log_softmax(x, -1)


def gradient(dy, y):
    return torch.ops.aten._log_softmax_backward_data(dy, y, -1, y.dtype)


DIMS = {"M": Dim(1, 1 << 20), "N": Dim(1, 1 << 18)}
SMALL = [{"M": 16, "N": 128}, {"M": 3, "N": 1000}]

FORWARD = task(
    "log_softmax.forward", reference, {"x": half("M N")}, DIMS, SMALL, moved="2*M*N*itemsize", flops="5*M*N",
)  # fmt: skip
BACKWARD = task(
    "log_softmax.backward", gradient, {"dy": half("M N"), "y": half("M N", values=Values(kind="log_probabilities"))},
    DIMS, SMALL, moved="3*M*N*itemsize", flops="4*M*N",
)  # fmt: skip

KERNELS = {
    "forward": Kernel("softmax", "timed", "def timed(x):\n    return log_softmax(x, -1, 1.0)\n"),
    "backward": Kernel("softmax", "timed", "def timed(dy, y):\n    return log_softmax_backward(dy, y, -1, 1.0)\n"),
}
GRID = {
    "headline": [{"M": 8192, "N": 8192}, {"M": 2048, "N": 128256}],
    "more": [{"M": 16, "N": 4096}, {"M": 1000, "N": 5003}, {"M": 4096, "N": 32000}],
}
