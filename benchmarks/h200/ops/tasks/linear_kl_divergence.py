"""KL divergence of a student's head from a teacher's, mean over the rows; and the step: loss, gradients of the student."""

import torch
from common import THROUGH_AUTOGRAD, Kernel, half, task

from tilewright.task import Dim, Values


def _logs(x, weight, teacher, teacher_weight):
    """In float32: rounded to bfloat16, log-probabilities that differ a little would be the same."""
    wide = torch.promote_types(x.dtype, torch.float32)
    s = torch.log_softmax((x @ weight.t()).to(wide), -1)
    return s, torch.log_softmax((teacher @ teacher_weight.t()).to(wide), -1)


def reference(x, weight, teacher, teacher_weight):
    s, t = _logs(x, weight, teacher, teacher_weight)
    return torch.nn.functional.kl_div(s, t, reduction="batchmean", log_target=True)


def step(x, weight, teacher, teacher_weight):
    """What PyTorch runs forward and backward."""
    s, t = _logs(x, weight, teacher, teacher_weight)
    p = t.exp()
    loss = (p * (t - s)).sum() / x.shape[0]
    of_logits = torch.ops.aten._log_softmax_backward_data(-p * (1 / x.shape[0]), s, -1, s.dtype).to(x.dtype)
    return loss, of_logits @ weight, of_logits.t() @ x


DIMS = {"M": Dim(1, 1 << 16), "K": Dim(1, 1 << 14), "T": Dim(1, 1 << 14), "V": Dim(2, 1 << 18)}
SMALL = [{"M": 12, "K": 24, "T": 16, "V": 50}, {"M": 300, "K": 16, "T": 8, "V": 40}]
GIVEN = {
    "x": half("M K"), "weight": half("V K", values=Values(std=0.0625)),
    "teacher": half("M T"), "teacher_weight": half("V T", values=Values(std=0.0625)),
}  # fmt: skip

FORWARD = task("linear_kl_divergence.forward", reference, GIVEN, DIMS, SMALL, flops="2*M*V*(K+T)",
               moved="(M*K+V*K+M*T+V*T)*itemsize")  # fmt: skip
STEP = task("linear_kl_divergence.step", step, GIVEN, DIMS, SMALL, flops="2*M*V*(3*K+T)",
            moved="(2*M*K+2*V*K+M*T+V*T)*itemsize")  # fmt: skip

ADAPTER = THROUGH_AUTOGRAD.format(more="teacher, teacher_weight", options='1.0, "mean"')
KERNELS = {
    d: Kernel("kl_divergence", entry, ADAPTER, "linear.py", ("kernel.py",))
    for d, entry in (("forward", "timed"), ("step", "timed_step"))
}
GRID = {
    "headline": [{"M": 8192, "K": 2048, "T": 4096, "V": 32000}, {"M": 4096, "K": 2048, "T": 4096, "V": 128256}],
    "more": [{"M": 256, "K": 2048, "T": 4096, "V": 128256}, {"M": 1000, "K": 768, "T": 1024, "V": 50257},
             {"M": 4096, "K": 896, "T": 3584, "V": 151936}],
}  # fmt: skip
