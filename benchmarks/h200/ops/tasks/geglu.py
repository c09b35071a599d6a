"""GEGLU (tanh form) of two tensors; its gradients as autograd computes them."""

import torch
from common import Kernel, half, task

from tilewright.task import Dim, uniform


def reference(gate, up):
    return torch.nn.functional.gelu(gate, approximate="tanh") * up


def gradient(dy, gate, up):
    dgate = torch.ops.aten.gelu_backward(dy * up, gate, approximate="tanh")
    return dgate, dy * torch.nn.functional.gelu(gate, approximate="tanh")


DIMS = {"M": Dim(1, 1 << 20), "N": Dim(1, 1 << 16)}
# Farther out the exact value is below what 1 + tanh leaves in float64, and the oracle says 0 where the kernel does not.
NEAR = uniform(-5.0, 5.0)
SMALL = [{"M": 16, "N": 128}, {"M": 3, "N": 1000}]

FORWARD = task(
    "geglu.forward", reference, {"gate": half("M N", values=NEAR), "up": half("M N")}, DIMS, SMALL, moved="3*M*N*itemsize",
    flops="12*M*N", peers=("liger_kernel.transformers.functional.liger_geglu",),
)  # fmt: skip
BACKWARD = task(
    "geglu.backward", gradient, {"dy": half("M N"), "gate": half("M N", values=NEAR), "up": half("M N")}, DIMS, SMALL,
    moved="5*M*N*itemsize", flops="24*M*N", peers=("h200_peers.liger_geglu_backward",),
)  # fmt: skip

ADAPTER = """
def timed(dy, gate, up):
    dgate, dup = torch.empty_like(gate), torch.empty_like(up)
    backward(dy, gate, up, dgate, dup, "tanh")
    return dgate, dup
"""
KERNELS = {
    "forward": Kernel("geglu", "timed", 'def timed(gate, up):\n    return kernel(gate, up, "tanh")\n'),
    "backward": Kernel("geglu", "timed", ADAPTER),
}
GRID = {
    "headline": [{"M": 8192, "N": 11008}, {"M": 8192, "N": 14336}],
    "more": [{"M": 16, "N": 11008}, {"M": 1000, "N": 5003}, {"M": 4096, "N": 24576}],
}
