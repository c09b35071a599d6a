"""Jensen-Shannon divergence behind two linear layers: beta, temperature, each reduction; gradients of the student's side."""

import torch

from tilewright.task import Contract, Dim, Scalar, Task, TensorSpec, Tolerance, Values, Work


def linear_js_divergence(
    x: torch.Tensor,
    weight: torch.Tensor,
    teacher: torch.Tensor,
    teacher_weight: torch.Tensor,
    beta: float = 0.5,
    temperature: float = 1.0,
    reduction: str = "mean",
) -> torch.Tensor:
    """``beta KL(p, m) + (1 - beta) KL(q, m)`` of each row, or their sum or mean."""
    wide = torch.promote_types(x.dtype, torch.float32)
    with torch.autocast(x.device.type, enabled=False):  # logits keep the dtype of x
        s = torch.nn.functional.linear(x, weight).to(wide)
        t = torch.nn.functional.linear(teacher.detach(), teacher_weight.detach()).to(wide)
    s, t = torch.log_softmax(s / temperature, -1), torch.log_softmax(t / temperature, -1)
    q, p, zero = torch.exp(s), torch.exp(t), torch.zeros_like(s)
    high = torch.maximum(s, t).detach()
    high = torch.where(high == -float("inf"), 0.0, high)
    m = high + torch.log(beta * torch.exp(t - high) + (1 - beta) * torch.exp(s - high))
    of_p = torch.where(p == 0, zero, p * torch.where(p == 0, zero, t - m))
    of_q = torch.where(q == 0, zero, q * torch.where(q == 0, zero, s - m))
    losses = (beta * of_p + (1 - beta) * of_q).sum(-1)
    return losses if reduction == "none" else losses.sum() if reduction == "sum" else losses.mean()


def reference(x, weight, teacher, teacher_weight, beta, temperature, reduction):
    return linear_js_divergence(x, weight, teacher, teacher_weight, beta, temperature, reduction)


FLOATS = ("float32", "float16", "bfloat16")

TASK = Task(
    name="linear_js_divergence",
    reference=reference,
    inputs={
        "x": TensorSpec("M K", dtypes=FLOATS, requires_grad=True),
        "weight": TensorSpec("V K", dtypes=FLOATS, values=Values(std=0.25), requires_grad=True),
        "teacher": TensorSpec("M T", dtypes=FLOATS),
        "teacher_weight": TensorSpec("V T", dtypes=FLOATS, values=Values(std=0.25)),
        "beta": Scalar(0.5, 0.125),
        "temperature": Scalar(1.0, 2.0),
        "reduction": Scalar("mean", "none", "sum"),
    },
    dims={"M": Dim(0, 1 << 20), "K": Dim(1, 1 << 14), "T": Dim(1, 1 << 14), "V": Dim(1, 1 << 18)},
    workloads=[
        {"M": 12, "K": 24, "T": 16, "V": 50},
        {"dims": {"M": 150, "K": 8, "T": 5, "V": 9}, "scalars": {"temperature": 2.0, "reduction": "none", "beta": 0.125}},
        {"dims": {"M": 150, "K": 4, "T": 4, "V": 700}, "scalars": {"temperature": 2.0}},
    ],
    contract=Contract(
        identifier="ops.linear_js_divergence", gradients="promised", accumulate="float32",
        preconditions=("no gradient reaches the teacher", "where both sides are nearly the same, the error is absolute"),
        tolerance=Tolerance(atol=2.0**-20),  # of logarithms of order 1 that cancel
    ),
    work=Work(bytes="(M*K + V*K + M*T + V*T)*itemsize", flops="2*M*V*(K + T)"),
)  # fmt: skip
