"""Jensen-Shannon divergence (beta 1/2) of log-probabilities, mean over the rows; and the step: it and the gradient."""

import torch
from common import Kernel, half, task

from tilewright.task import Dim, Values


def _terms(x, target):
    x, t = x.float() if x.dtype == torch.bfloat16 else x, target.float() if x.dtype == torch.bfloat16 else target
    q, p = x.exp(), t.exp()
    log_m = ((p + q) / 2).log()
    return x, t, q, p, log_m


def reference(x, target):
    x, t, q, p, log_m = _terms(x, target)
    return (p * (t - log_m) + q * (x - log_m)).sum() / 2 / x.shape[0]


def step(x, target):
    """Forward, and the gradient of the input as its formula."""
    wide, t, q, p, log_m = _terms(x, target)
    loss = (p * (t - log_m) + q * (wide - log_m)).sum() / 2 / x.shape[0]
    return loss, (q * (wide - log_m) / 2 / x.shape[0]).to(x.dtype)


DIMS = {"M": Dim(1, 1 << 16), "V": Dim(2, 1 << 18)}
SMALL = [{"M": 24, "V": 100}, {"M": 3, "V": 5000}]
LOGS = half("M V", values=Values(kind="log_probabilities"))
GIVEN = {"x": LOGS, "target": LOGS}

FORWARD = task(
    "js_divergence.forward", reference, GIVEN, DIMS, SMALL, moved="2*M*V*itemsize", flops="10*M*V",
    peers=("h200_peers.liger_js_divergence",),
)  # fmt: skip
STEP = task(
    "js_divergence.step", step, GIVEN, DIMS, SMALL, moved="3*M*V*itemsize", flops="14*M*V",
    peers=("h200_peers.liger_js_divergence_step",),
)  # fmt: skip

ADAPTER = """
def timed(x, target):
    return forward(x, target, True, 0.5, None, "batchmean", x.shape[0])[0]


def timed_step(x, target):
    loss, *kept = forward(x, target, True, 0.5, None, "batchmean", x.shape[0])
    one = torch.ones((), dtype=torch.float32, device=x.device)
    return loss, backward(one, x, target, *kept, True, 0.5, None, "batchmean", x.shape[0], (True, False))[0]
"""
KERNELS = {"forward": Kernel("js_divergence", "timed", ADAPTER), "step": Kernel("js_divergence", "timed_step", ADAPTER)}
GRID = {
    "headline": [{"M": 8192, "V": 32000}, {"M": 2048, "V": 128256}],
    "more": [{"M": 64, "V": 128256}, {"M": 1000, "V": 50257}, {"M": 2048, "V": 151936}],
}
