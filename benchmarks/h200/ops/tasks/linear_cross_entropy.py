"""Mean cross entropy behind a linear layer; and the step of a training: the loss, the gradients of input and weight."""

import torch
from common import THROUGH_AUTOGRAD, Kernel, half, task

from tilewright.task import Dim, TensorSpec, Values, integers


def reference(x, weight, target):
    return torch.nn.functional.cross_entropy(x @ weight.t(), target).float()


def step(x, weight, target):
    """What PyTorch runs forward and backward for ``cross_entropy(linear(x, weight), target)``."""
    aten, one = torch.ops.aten, torch.ones((), dtype=x.dtype, device=x.device)
    log_p = torch.log_softmax(x @ weight.t(), -1)
    loss, count = aten.nll_loss_forward(log_p, target, None, 1, -100)
    of_log_p = aten.nll_loss_backward(one, log_p, target, None, 1, -100, count)
    of_logits = aten._log_softmax_backward_data(of_log_p, log_p, -1, x.dtype)
    return loss.float(), of_logits @ weight, of_logits.t() @ x


DIMS = {"M": Dim(1, 1 << 16), "K": Dim(1, 1 << 14), "V": Dim(2, 1 << 18)}
SMALL = [{"M": 12, "K": 24, "V": 50}, {"M": 300, "K": 16, "V": 40}]
GIVEN = {
    "x": half("M K"),
    "weight": half("V K", values=Values(std=0.0625)),
    "target": TensorSpec("M", dtypes=("int64",), values=integers(0, "V"), dtype_group="index"),
}

FORWARD = task(
    "linear_cross_entropy.forward", reference, GIVEN, DIMS, SMALL, moved="(M*K+V*K)*itemsize + 8*M", flops="2*M*K*V",
    peers=("h200_peers.liger_linear_cross_entropy", "h200_peers.cut_linear_cross_entropy"),
)  # fmt: skip
STEP = task(
    "linear_cross_entropy.step", step, GIVEN, DIMS, SMALL, moved="(2*M*K+2*V*K)*itemsize + 8*M", flops="6*M*K*V",
    peers=("h200_peers.liger_linear_cross_entropy_step", "h200_peers.cut_linear_cross_entropy_step"),
)  # fmt: skip

ADAPTER = THROUGH_AUTOGRAD.format(more="target", options='None, -100, 0.0, 0.0, 0.0, "mean"')
KERNELS = {
    d: Kernel("cross_entropy", entry, ADAPTER, "linear.py", ("kernel.py",))
    for d, entry in (("forward", "timed"), ("step", "timed_step"))
}
GRID = {
    "headline": [{"M": 8192, "K": 4096, "V": 128256}, {"M": 8192, "K": 4096, "V": 32000}],
    "more": [
        {"M": 512, "K": 2048, "V": 128256},
        {"M": 1000, "K": 768, "V": 50257},
        {"M": 4096, "K": 3584, "V": 151936},
    ],
}
