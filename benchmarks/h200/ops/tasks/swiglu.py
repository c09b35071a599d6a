"""SwiGLU of two tensors; its gradients as autograd computes them."""

import torch
from common import Kernel, half, task

from tilewright.task import Dim


def reference(gate, up):
    return torch.nn.functional.silu(gate) * up


def gradient(dy, gate, up):
    return torch.ops.aten.silu_backward(dy * up, gate), dy * torch.nn.functional.silu(gate)


DIMS = {"M": Dim(1, 1 << 20), "N": Dim(1, 1 << 16)}
SMALL = [{"M": 16, "N": 128}, {"M": 3, "N": 1000}]

FORWARD = task(
    "swiglu.forward", reference, {"gate": half("M N"), "up": half("M N")}, DIMS, SMALL, moved="3*M*N*itemsize",
    flops="6*M*N", peers=("liger_kernel.transformers.functional.liger_swiglu", "fla.modules.activations.swiglu"),
)  # fmt: skip
BACKWARD = task(
    "swiglu.backward", gradient, {"dy": half("M N"), "gate": half("M N"), "up": half("M N")}, DIMS, SMALL,
    moved="5*M*N*itemsize", flops="12*M*N", peers=("h200_peers.liger_swiglu_backward", "h200_peers.fla_swiglu_backward"),
)  # fmt: skip

ADAPTER = """
def timed(dy, gate, up):
    dgate, dup = torch.empty_like(gate), torch.empty_like(up)
    backward(dy, gate, up, dgate, dup)
    return dgate, dup
"""
KERNELS = {"forward": Kernel("swiglu", "kernel"), "backward": Kernel("swiglu", "timed", ADAPTER)}
GRID = {
    "headline": [{"M": 8192, "N": 11008}, {"M": 8192, "N": 14336}],
    "more": [{"M": 16, "N": 11008}, {"M": 1000, "N": 5003}, {"M": 4096, "N": 28672}],
}
