"""Mean cross entropy of rows of logits; and the step of a training: the loss and the gradient of the logits."""

import torch
from common import Kernel, half, task

from tilewright.task import Dim, TensorSpec, integers


def reference(logits, target):
    return torch.nn.functional.cross_entropy(logits, target).float()


def step(logits, target):
    """What PyTorch runs forward and backward for ``cross_entropy(logits, target)``."""
    aten, one = torch.ops.aten, torch.ones((), dtype=logits.dtype, device=logits.device)
    log_p = torch.log_softmax(logits, -1)
    loss, count = aten.nll_loss_forward(log_p, target, None, 1, -100)
    of_log_p = aten.nll_loss_backward(one, log_p, target, None, 1, -100, count)
    return loss.float(), aten._log_softmax_backward_data(of_log_p, log_p, -1, logits.dtype)


DIMS = {"M": Dim(1, 1 << 16), "V": Dim(2, 1 << 18)}
SMALL = [{"M": 24, "V": 100}, {"M": 3, "V": 5000}]
GIVEN = {
    "logits": half("M V"),
    "target": TensorSpec("M", dtypes=("int64",), values=integers(0, "V"), dtype_group="index"),
}

FORWARD = task(
    "cross_entropy.forward", reference, GIVEN, DIMS, SMALL, moved="M*V*itemsize + 8*M", flops="4*M*V",
    peers=("h200_peers.liger_cross_entropy",),
)  # fmt: skip
STEP = task(
    "cross_entropy.step", step, GIVEN, DIMS, SMALL, moved="2*M*V*itemsize + 8*M", flops="8*M*V",
    peers=("h200_peers.liger_cross_entropy_step",),
)  # fmt: skip

OPTIONS = 'None, -100, 0.0, 0.0, 0.0, "mean"'
ADAPTER = f"""
def timed(logits, target):
    loss, stats, divisor = forward(logits, target, {OPTIONS})
    one = torch.ones((), dtype=torch.float32, device=logits.device)
    return loss, backward(one, logits, target, None, stats, divisor, -100, 0.0, 0.0, 0.0, "mean")
"""
KERNELS = {
    "forward": Kernel(
        "cross_entropy", "timed", f"def timed(logits, target):\n    return forward(logits, target, {OPTIONS})[0]\n"
    ),
    "step": Kernel("cross_entropy", "timed", ADAPTER),
}
GRID = {
    "headline": [{"M": 8192, "V": 128256}, {"M": 8192, "V": 32000}],
    "more": [{"M": 64, "V": 128256}, {"M": 1000, "V": 50257}, {"M": 4096, "V": 151936}],
}
