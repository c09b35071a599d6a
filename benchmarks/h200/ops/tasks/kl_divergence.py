"""KL divergence of log-probabilities from log-targets, mean over the rows; and the step: it and the input's gradient."""

import torch
from common import Kernel, half, task

from tilewright.task import Dim, Values


def reference(x, target):
    return torch.nn.functional.kl_div(x, target, reduction="batchmean", log_target=True).float()


def step(x, target):
    """What PyTorch runs forward and backward for ``kl_div``."""
    p = target.exp()
    return ((p * (target - x)).sum() / x.shape[0]).float(), -p * (1 / x.shape[0])


DIMS = {"M": Dim(1, 1 << 16), "V": Dim(2, 1 << 18)}
SMALL = [{"M": 24, "V": 100}, {"M": 3, "V": 5000}]
LOGS = half("M V", values=Values(kind="log_probabilities"))
GIVEN = {"x": LOGS, "target": LOGS}

FORWARD = task(
    "kl_divergence.forward", reference, GIVEN, DIMS, SMALL, moved="2*M*V*itemsize", flops="4*M*V",
    peers=("h200_peers.liger_kl_divergence",),
)  # fmt: skip
STEP = task(
    "kl_divergence.step", step, GIVEN, DIMS, SMALL, moved="3*M*V*itemsize", flops="6*M*V",
    peers=("h200_peers.liger_kl_divergence_step",),
)  # fmt: skip

ADAPTER = """
def timed(x, target):
    return forward(x, target, True, None, "batchmean", x.shape[0])[0]


def timed_step(x, target):
    loss, stats = forward(x, target, True, None, "batchmean", x.shape[0])
    one = torch.ones((), dtype=torch.float32, device=x.device)
    return loss, backward(one, x, target, stats, True, None, "batchmean", x.shape[0], (True, False))[0]
"""
KERNELS = {"forward": Kernel("kl_divergence", "timed", ADAPTER), "step": Kernel("kl_divergence", "timed_step", ADAPTER)}
GRID = {
    "headline": [{"M": 8192, "V": 32000}, {"M": 2048, "V": 128256}],
    "more": [{"M": 64, "V": 128256}, {"M": 1000, "V": 50257}, {"M": 2048, "V": 151936}],
}
