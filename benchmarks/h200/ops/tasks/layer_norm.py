"""Layer norm of rows with weight and bias; its gradients as autograd computes them, from the input and what was kept."""

import torch
from common import Kernel, half, task, wide

from tilewright.task import Dim


def reference(x, weight, bias):
    return torch.nn.functional.layer_norm(x, weight.shape, weight, bias, 1e-5)


def gradient(dy, x, stats, weight, bias):
    mean, scale = stats[:, :1].contiguous(), stats[:, 1:].contiguous()
    if x.is_cuda and x.dtype != torch.float64:  # what autograd runs; on the CPU it does not take these dtypes
        args = (weight.shape, mean, scale, weight, bias, [True] * 3)
        return torch.ops.aten.native_layer_norm_backward(dy, x, *args)
    unit, g = (x.to(scale.dtype) - mean) * scale, dy.to(scale.dtype)
    of = g * weight.to(scale.dtype)
    dx = (of - of.mean(-1, keepdim=True) - unit * (of * unit).mean(-1, keepdim=True)) * scale
    return dx.to(x.dtype), (g * unit).sum(0).to(weight.dtype), g.sum(0).to(bias.dtype)


DIMS = {"M": Dim(1, 1 << 20), "N": Dim(1, 1 << 16)}
SMALL = [{"M": 16, "N": 128}, {"M": 3, "N": 1000}]

FORWARD = task(
    "layer_norm.forward", reference, {"x": half("M N"), "weight": half("N"), "bias": half("N")}, DIMS, SMALL,
    moved="(2*M*N+2*N)*itemsize", flops="6*M*N",
    peers=("h200_peers.liger_layer_norm", "h200_peers.fla_layer_norm"),
)  # fmt: skip
BACKWARD = task(
    "layer_norm.backward", gradient,
    {"dy": half("M N"), "x": half("M N"), "stats": wide("M 2"), "weight": half("N"), "bias": half("N")}, DIMS, SMALL,
    moved="(3*M*N+3*N)*itemsize + 8*M", flops="10*M*N", peers=("h200_peers.liger_layer_norm_backward",),
)  # fmt: skip

KERNELS = {
    "forward": Kernel("layer_norm", "timed", "def timed(x, weight, bias):\n    return kernel(x, weight, bias, 1e-5)\n"),
    "backward": Kernel("layer_norm", "backward"),
}
GRID = {
    "headline": [{"M": 8192, "N": 8192}, {"M": 32768, "N": 4096}],
    "more": [{"M": 16, "N": 4096}, {"M": 1000, "N": 5003}, {"M": 65536, "N": 1024}],
}
