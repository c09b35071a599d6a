"""GEGLU (tanh form) of the halves of one tensor; its gradient as autograd computes it."""

import torch
from common import Kernel, half, task

from tilewright.task import Dim, uniform


def reference(x):
    gate, up = x.chunk(2, -1)
    return torch.nn.functional.gelu(gate, approximate="tanh") * up


def gradient(dy, x):
    gate, up = x.chunk(2, -1)
    dgate = torch.ops.aten.gelu_backward(dy * up, gate, approximate="tanh")
    return torch.cat((dgate, dy * torch.nn.functional.gelu(gate, approximate="tanh")), -1)


DIMS = {"M": Dim(1, 1 << 20), "N": Dim(1, 1 << 16)}
# Farther out the exact value is below what 1 + tanh leaves in float64, and the oracle says 0 where the kernel does not.
NEAR = uniform(-5.0, 5.0)
SMALL = [{"M": 16, "N": 128}, {"M": 3, "N": 1000}]

FORWARD = task(
    "geglu_packed.forward", reference, {"x": half("M 2*N", values=NEAR)}, DIMS, SMALL, moved="3*M*N*itemsize", flops="12*M*N",
    peers=("conch.ops.activation.gelu_tanh_and_mul.gelu_tanh_and_mul",),
)  # fmt: skip
BACKWARD = task(
    "geglu_packed.backward", gradient, {"dy": half("M N"), "x": half("M 2*N", values=NEAR)}, DIMS, SMALL, moved="5*M*N*itemsize",
    flops="24*M*N",
)  # fmt: skip

ADAPTER = """
def timed(dy, x):
    dx = torch.empty_like(x)
    backward(dy, *x.chunk(2, -1), *dx.chunk(2, -1), "tanh")
    return dx
"""
KERNELS = {
    "forward": Kernel("geglu", "timed", 'def timed(x):\n    return packed(x, "tanh")\n'),
    "backward": Kernel("geglu", "timed", ADAPTER),
}
GRID = {
    "headline": [{"M": 8192, "N": 11008}, {"M": 8192, "N": 14336}],
    "more": [{"M": 16, "N": 11008}, {"M": 1000, "N": 5003}, {"M": 4096, "N": 24576}],
}
