"""Group norm (32 groups) with weight and bias; its gradients as autograd computes them, from the input and what was kept."""

import torch
from common import Kernel, half, task, wide

from tilewright.task import Dim


def reference(x, weight, bias):
    return torch.nn.functional.group_norm(x, 32, weight, bias, 1e-5)


def gradient(dy, x, stats, weight, bias):
    N, C, S = x.shape
    mean, scale = (stats[:, i].contiguous().view(N, 32) for i in (0, 1))
    if x.is_cuda and x.dtype != torch.float64:  # what autograd runs; on the CPU it does not take these dtypes
        kept = (mean.to(x.dtype), scale.to(x.dtype))  # as the forward of this dtype keeps them
        return torch.ops.aten.native_group_norm_backward(dy, x, *kept, weight, N, C, S, 32, [True] * 3)
    rows = (N, 32, C // 32 * S)
    unit = (x.to(scale.dtype).reshape(rows) - mean[..., None]) * scale[..., None]
    g = dy.to(scale.dtype)
    of = (g * weight.to(scale.dtype)[:, None]).reshape(rows)
    dx = (of - of.mean(-1, keepdim=True) - unit * (of * unit).mean(-1, keepdim=True)) * scale[..., None]
    dw = (g * unit.reshape(N, C, S)).sum((0, 2))
    return dx.reshape(N, C, S).to(x.dtype), dw.to(weight.dtype), g.sum((0, 2)).to(bias.dtype)


DIMS = {"N": Dim(1, 1 << 10), "K": Dim(1, 256), "S": Dim(1, 1 << 18)}
SMALL = [{"N": 2, "K": 2, "S": 64}, {"N": 1, "K": 3, "S": 333}]
EACH = {"weight": half("32*K"), "bias": half("32*K")}

FORWARD = task(
    "group_norm.forward", reference, {"x": half("N 32*K S"), **EACH}, DIMS, SMALL, moved="(64*N*K*S+64*K)*itemsize",
    flops="192*N*K*S", peers=("h200_peers.liger_group_norm",),
)  # fmt: skip
BACKWARD = task(
    "group_norm.backward", gradient, {"dy": half("N 32*K S"), "x": half("N 32*K S"), "stats": wide("N*32 2"), **EACH},
    DIMS, SMALL, moved="(96*N*K*S+96*K)*itemsize + 256*N", flops="320*N*K*S",
    peers=("h200_peers.liger_group_norm_backward",),
)  # fmt: skip

KERNELS = {
    "forward": Kernel(
        "group_norm", "timed", "def timed(x, weight, bias):\n    return kernel(x, 32, weight, bias, 1e-5)\n"
    ),
    "backward": Kernel(
        "group_norm", "timed",
        "def timed(dy, x, stats, weight, bias):\n    return backward(dy, x, stats, 32, weight, bias)\n",
    ),
}  # fmt: skip
GRID = {
    "headline": [{"N": 32, "K": 10, "S": 4096}, {"N": 16, "K": 16, "S": 16384}],
    "more": [{"N": 1, "K": 10, "S": 4096}, {"N": 7, "K": 5, "S": 1021}, {"N": 64, "K": 40, "S": 256}],
}
