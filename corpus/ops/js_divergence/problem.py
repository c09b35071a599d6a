"""Jensen-Shannon divergence of log-probabilities: a weight beta, a temperature, each reduction; with gradients."""

import torch

from tilewright.task import Contract, Dim, Scalar, Task, TensorSpec, Values, Work


def js_divergence(
    x: torch.Tensor,
    target: torch.Tensor,
    log_target: bool = False,
    beta: float = 0.5,
    temperature: float | None = None,
    reduction: str = "batchmean",
) -> torch.Tensor:
    """``beta p log(p / m) + (1 - beta) q log(q / m)`` of each element, or their sum or a mean."""
    wide = torch.promote_types(x.dtype, torch.float32)
    x, target = x.to(wide), target.to(wide)
    zero = torch.zeros_like(target)
    none = torch.zeros_like(target, dtype=torch.bool) if log_target else target == 0
    t = target if log_target else torch.where(none, -float("inf"), torch.log(torch.where(none, 1.0, target)))
    if temperature is not None:
        x, t = torch.log_softmax(x / temperature, -1), torch.log_softmax(t / temperature, -1)
    q, p = torch.exp(x), torch.exp(t)
    high = torch.maximum(x, t).detach()
    high = torch.where(high == -float("inf"), 0.0, high)
    m = high + torch.log(beta * torch.exp(t - high) + (1 - beta) * torch.exp(x - high))
    of_p = torch.where(p == 0, zero, p * torch.where(p == 0, zero, t - m))
    of_q = torch.where(q == 0, zero, q * torch.where(q == 0, zero, x - m))
    terms = beta * of_p + (1 - beta) * of_q
    if reduction == "none":
        return terms
    return terms.sum() / {"sum": 1, "mean": x.numel(), "batchmean": x.shape[0]}[reduction]


FLOATS = ("float32", "float16", "bfloat16")

TASK = Task(
    name="js_divergence",
    reference=js_divergence,
    inputs={
        "x": TensorSpec("M V", dtypes=FLOATS, values=Values(kind="log_probabilities"), requires_grad=True),
        "target": TensorSpec("M V", dtypes=FLOATS, values=Values(kind="log_probabilities"), requires_grad=True),
        "log_target": Scalar(True),
        "beta": Scalar(0.5, 0.125),
        "temperature": Scalar(None, 2.0),
        "reduction": Scalar("batchmean", "none", "mean", "sum"),
    },
    dims={"M": Dim(0, 1 << 20), "V": Dim(1, 1 << 18)},
    workloads=[
        {"M": 20, "V": 100},
        {"dims": {"M": 5, "V": 33}, "scalars": {"temperature": 2.0, "reduction": "none", "beta": 0.125}},
        {"dims": {"M": 2, "V": 17000}, "scalars": {"temperature": 2.0}},
        {"dims": {"M": 2, "V": 17000}, "scalars": {"temperature": 2.0, "reduction": "none"}},
    ],
    contract=Contract(
        identifier="ops.js_divergence", gradients="promised", accumulate="float32",
        preconditions=("where a distribution gives probability 0 it adds nothing",),
    ),
    work=Work(bytes="2*M*V*itemsize", flops="14*M*V"),
)  # fmt: skip
