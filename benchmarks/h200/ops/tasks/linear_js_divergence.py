"""Jensen-Shannon divergence (beta 1/2) of a student's head and a teacher's; and the step: loss, gradients of the student."""

import torch
from common import THROUGH_AUTOGRAD, Kernel, half, task

from tilewright.task import Dim, Tolerance, Values


def _terms(x, weight, teacher, teacher_weight):
    wide = torch.promote_types(x.dtype, torch.float32)
    s = torch.log_softmax((x @ weight.t()).to(wide), -1)
    t = torch.log_softmax((teacher @ teacher_weight.t()).to(wide), -1)
    q, p = s.exp(), t.exp()
    return s, t, q, p, ((p + q) / 2).log()


def _times(p, log):
    """0 where the probability is 0, whatever its logarithm."""
    return torch.where(p == 0, torch.zeros_like(p), p * log)


def reference(x, weight, teacher, teacher_weight):
    s, t, q, p, log_m = _terms(x, weight, teacher, teacher_weight)
    return (_times(p, t - log_m) + _times(q, s - log_m)).sum() / 2 / x.shape[0]


def step(x, weight, teacher, teacher_weight):
    """Forward, and the gradient as its formula, then through the layer as PyTorch does."""
    s, t, q, p, log_m = _terms(x, weight, teacher, teacher_weight)
    of_q = _times(q, s - log_m)
    loss = (_times(p, t - log_m) + of_q).sum() / 2 / x.shape[0]
    of_logits = torch.ops.aten._log_softmax_backward_data(of_q * (0.5 / x.shape[0]), s, -1, s.dtype).to(x.dtype)
    return loss, of_logits @ weight, of_logits.t() @ x


DIMS = {"M": Dim(1, 1 << 16), "K": Dim(1, 1 << 14), "T": Dim(1, 1 << 14), "V": Dim(2, 1 << 18)}
SMALL = [{"M": 12, "K": 24, "T": 16, "V": 50}, {"M": 300, "K": 16, "T": 8, "V": 40}]
GIVEN = {
    "x": half("M K"), "weight": half("V K", values=Values(std=0.0625)),
    "teacher": half("M T"), "teacher_weight": half("V T", values=Values(std=0.0625)),
}  # fmt: skip

FORWARD = task("linear_js_divergence.forward", reference, GIVEN, DIMS, SMALL, flops="2*M*V*(K+T)",
               moved="(M*K+V*K+M*T+V*T)*itemsize", peers=("h200_peers.liger_linear_js_divergence",))  # fmt: skip
# Near equal distributions the gradient of the logits is a difference of differences, rounded to bfloat16 before few rows of
# it are summed: 12 rows were seen at 8.6 times the error of the reference in bfloat16.
PLAIN = task("linear_js_divergence.step", step, GIVEN, DIMS, SMALL, flops="2*M*V*(3*K+T)",
            moved="(2*M*K+2*V*K+M*T+V*T)*itemsize", peers=("h200_peers.liger_linear_js_divergence_step",))  # fmt: skip
STEP = PLAIN.model_copy(update={"contract": PLAIN.contract.model_copy(update={"tolerance": Tolerance(k=16.0)})})

ADAPTER = THROUGH_AUTOGRAD.format(more="teacher, teacher_weight", options='0.5, 1.0, "mean"')
KERNELS = {
    d: Kernel("js_divergence", entry, ADAPTER, "linear.py", ("kernel.py",))
    for d, entry in (("forward", "timed"), ("step", "timed_step"))
}
GRID = {
    "headline": [{"M": 8192, "K": 2048, "T": 4096, "V": 32000}, {"M": 4096, "K": 2048, "T": 4096, "V": 128256}],
    "more": [{"M": 256, "K": 2048, "T": 4096, "V": 128256}, {"M": 1000, "K": 768, "T": 1024, "V": 50257},
             {"M": 4096, "K": 896, "T": 3584, "V": 151936}],
}  # fmt: skip
