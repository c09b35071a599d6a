"""SwiGLU of the halves of one tensor; its gradient as autograd computes it."""

import torch
from common import Kernel, half, task

from tilewright.task import Dim


def reference(x):
    gate, up = x.chunk(2, -1)
    return torch.nn.functional.silu(gate) * up


def gradient(dy, x):
    gate, up = x.chunk(2, -1)
    return torch.cat((torch.ops.aten.silu_backward(dy * up, gate), dy * torch.nn.functional.silu(gate)), -1)


DIMS = {"M": Dim(1, 1 << 20), "N": Dim(1, 1 << 16)}
SMALL = [{"M": 16, "N": 128}, {"M": 3, "N": 1000}]

FORWARD = task(
    "swiglu_packed.forward", reference, {"x": half("M 2*N")}, DIMS, SMALL, moved="3*M*N*itemsize", flops="6*M*N",
    peers=("h200_peers.liger_swiglu_packed", "conch.ops.activation.silu_and_mul.silu_and_mul"),
)  # fmt: skip
BACKWARD = task(
    "swiglu_packed.backward", gradient, {"dy": half("M N"), "x": half("M 2*N")}, DIMS, SMALL, moved="5*M*N*itemsize",
    flops="12*M*N", peers=("h200_peers.liger_swiglu_packed_backward",),
)  # fmt: skip

ADAPTER = """
def timed(dy, x):
    dx = torch.empty_like(x)
    backward(dy, *x.chunk(2, -1), *dx.chunk(2, -1))
    return dx
"""
KERNELS = {"forward": Kernel("swiglu", "packed"), "backward": Kernel("swiglu", "timed", ADAPTER)}
GRID = {
    "headline": [{"M": 8192, "N": 11008}, {"M": 8192, "N": 14336}],
    "more": [{"M": 16, "N": 11008}, {"M": 1000, "N": 5003}, {"M": 4096, "N": 28672}],
}
