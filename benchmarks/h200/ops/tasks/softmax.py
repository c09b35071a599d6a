"""Softmax of rows; its gradient from the result, with what rows that were rounded, and don't add up to 1, leave.

PyTorch's own routine, which leaves that out, stands beside it as the vendor's.
"""

import torch
from common import Kernel, half, task

from tilewright.task import Dim, Values


def reference(x):
    return torch.softmax(x, -1)


def gradient(dy, y):
    along = (dy * y).sum(-1, keepdim=True)
    rest = ((dy - along) * y).sum(-1, keepdim=True)
    return y * (dy - along - rest)


DIMS = {"M": Dim(1, 1 << 20), "N": Dim(1, 1 << 17)}
SMALL = [{"M": 16, "N": 128}, {"M": 3, "N": 1000}]

FORWARD = task(
    "softmax.forward", reference, {"x": half("M N")}, DIMS, SMALL, moved="2*M*N*itemsize", flops="5*M*N",
    peers=("liger_kernel.transformers.functional.liger_softmax",),
)  # fmt: skip
BACKWARD = task(
    "softmax.backward", gradient, {"dy": half("M N"), "y": half("M N", values=Values(kind="probabilities"))}, DIMS, SMALL,
    moved="3*M*N*itemsize", flops="4*M*N", peers=("vendor=h200_peers.torch_softmax_backward", "h200_peers.liger_softmax_backward"),
)  # fmt: skip

KERNELS = {
    "forward": Kernel("softmax", "timed", "def timed(x):\n    return softmax(x, -1, 1.0)\n"),
    "backward": Kernel("softmax", "timed", "def timed(dy, y):\n    return softmax_backward(dy, y, -1, 1.0)\n"),
}
GRID = {
    "headline": [{"M": 8192, "N": 8192}, {"M": 4096, "N": 32768}],
    "more": [{"M": 16, "N": 4096}, {"M": 1000, "N": 5003}, {"M": 32768, "N": 2048}],
}
