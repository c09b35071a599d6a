"""Addition of a residual and RMS norm of the sum; gradients of both results, from the sum and each row's scale."""

import torch
from common import Kernel, half, task, wide

from tilewright.task import Dim


def reference(x, residual, weight):
    total = x + residual
    return torch.nn.functional.rms_norm(total, weight.shape, weight, 1e-6), total


def gradient(dy, dtotal, total, scale, weight):
    if total.is_cuda and total.dtype != torch.float64:  # what autograd runs; there is none on the CPU
        args = (total, weight.shape, scale[:, None], weight, [True, True])
        dx, dw = torch.ops.aten._fused_rms_norm_backward(dy, *args)
        return dx + dtotal, dw
    unit, g = total.to(scale.dtype) * scale[:, None], dy.to(scale.dtype)
    of = g * weight.to(scale.dtype)
    dx = (of - unit * (of * unit).mean(-1, keepdim=True)) * scale[:, None]
    return dx.to(total.dtype) + dtotal, (g * unit).sum(0).to(weight.dtype)


DIMS = {"M": Dim(1, 1 << 20), "N": Dim(1, 1 << 16)}
SMALL = [{"M": 16, "N": 128}, {"M": 3, "N": 1000}]

FORWARD = task(
    "rms_norm_residual.forward", reference, {"x": half("M N"), "residual": half("M N"), "weight": half("N")}, DIMS, SMALL,
    moved="(4*M*N+N)*itemsize", flops="5*M*N",
    peers=("h200_peers.liger_rms_norm_residual", "h200_peers.fla_rms_norm_residual"),
)  # fmt: skip
BACKWARD = task(
    "rms_norm_residual.backward", gradient,
    {"dy": half("M N"), "dtotal": half("M N"), "total": half("M N"), "scale": wide("M"), "weight": half("N")}, DIMS, SMALL,
    moved="(4*M*N+2*N)*itemsize + 4*M", flops="9*M*N", peers=("h200_peers.liger_rms_norm_residual_backward",),
)  # fmt: skip

KERNELS = {
    "forward": Kernel(
        "rms_norm", "timed", "def timed(x, other, weight):\n    return residual(x, other, weight, 1e-6, 0.0)\n"
    ),
    "backward": Kernel(
        "rms_norm", "timed",
        "def timed(dy, dtotal, total, scale, weight):\n    return backward(dy, dtotal, total, scale, weight, 0.0)\n",
    ),
}  # fmt: skip
GRID = {
    "headline": [{"M": 8192, "N": 8192}, {"M": 32768, "N": 4096}],
    "more": [{"M": 16, "N": 4096}, {"M": 1000, "N": 5003}, {"M": 16384, "N": 5120}],
}
