"""RMS norm of rows with a weight; its gradients as autograd computes them, from the input and each row's scale."""

import torch
from common import Kernel, half, task, wide

from tilewright.task import Dim


def reference(x, weight):
    return torch.nn.functional.rms_norm(x, weight.shape, weight, 1e-6)


def gradient(dy, x, scale, weight):
    if x.is_cuda and x.dtype != torch.float64:  # what autograd runs; there is none on the CPU
        return torch.ops.aten._fused_rms_norm_backward(dy, x, weight.shape, scale[:, None], weight, [True, True])
    unit, g = x.to(scale.dtype) * scale[:, None], dy.to(scale.dtype)
    of = g * weight.to(scale.dtype)
    dx = (of - unit * (of * unit).mean(-1, keepdim=True)) * scale[:, None]
    return dx.to(x.dtype), (g * unit).sum(0).to(weight.dtype)


DIMS = {"M": Dim(1, 1 << 20), "N": Dim(1, 1 << 16)}
SMALL = [{"M": 16, "N": 128}, {"M": 3, "N": 1000}]

FORWARD = task(
    "rms_norm.forward", reference, {"x": half("M N"), "weight": half("N")}, DIMS, SMALL, moved="(2*M*N+N)*itemsize",
    flops="4*M*N",
    peers=("h200_peers.liger_rms_norm", "h200_peers.fla_rms_norm", "h200_peers.conch_rms_norm"),
)  # fmt: skip
BACKWARD = task(
    "rms_norm.backward", gradient, {"dy": half("M N"), "x": half("M N"), "scale": wide("M"), "weight": half("N")}, DIMS,
    SMALL, moved="(3*M*N+2*N)*itemsize + 4*M", flops="8*M*N",
    peers=("h200_peers.liger_rms_norm_backward", "h200_peers.fla_rms_norm_backward"),
)  # fmt: skip

KERNELS = {
    "forward": Kernel("rms_norm", "timed", "def timed(x, weight):\n    return kernel(x, weight, 1e-6, 0.0)\n"),
    "backward": Kernel(
        "rms_norm", "timed",
        "def timed(dy, x, scale, weight):\n    return backward(dy, None, x, scale, weight, 0.0)\n",
    ),
}  # fmt: skip
GRID = {
    "headline": [{"M": 8192, "N": 8192}, {"M": 32768, "N": 4096}],
    "more": [{"M": 16, "N": 4096}, {"M": 1000, "N": 5003}, {"M": 16384, "N": 5120}],
}
