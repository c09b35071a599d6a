"""KL divergence of log-probabilities from probabilities: a temperature, each reduction; with gradients."""

import torch

from tilewright.task import Contract, Dim, Scalar, Task, TensorSpec, Values, Work


def kl_divergence(
    x: torch.Tensor,
    target: torch.Tensor,
    log_target: bool = False,
    temperature: float | None = None,
    reduction: str = "batchmean",
) -> torch.Tensor:
    """``p (log p - log q)`` of each element, or their sum or a mean; a term whose target has probability 0 is 0."""
    wide = torch.promote_types(x.dtype, torch.float32)
    x, target = x.to(wide), target.to(wide)
    zero = torch.zeros_like(target)
    none = torch.zeros_like(target, dtype=torch.bool) if log_target else target == 0
    t = target if log_target else torch.where(none, -float("inf"), torch.log(torch.where(none, 1.0, target)))
    if temperature is not None:
        x, t = torch.log_softmax(x / temperature, -1), torch.log_softmax(t / temperature, -1)
    p = torch.exp(t) if log_target or temperature is not None else target
    none = p == 0
    terms = torch.where(none, zero, p * torch.where(none, zero, t - x))
    if reduction == "none":
        return terms
    return terms.sum() / {"sum": 1, "mean": x.numel(), "batchmean": x.shape[0]}[reduction]


FLOATS = ("float32", "float16", "bfloat16")

TASK = Task(
    name="kl_divergence_probabilities",
    reference=kl_divergence,
    inputs={
        "x": TensorSpec("M V", dtypes=FLOATS, values=Values(kind="log_probabilities"), requires_grad=True),
        "target": TensorSpec("M V", dtypes=FLOATS, values=Values(kind="probabilities"), requires_grad=True),
        "log_target": Scalar(False),
        "temperature": Scalar(None, 2.0),
        "reduction": Scalar("batchmean", "none", "mean", "sum"),
    },
    dims={"M": Dim(0, 1 << 20), "V": Dim(1, 1 << 18)},
    workloads=[
        {"M": 20, "V": 100},
        {"dims": {"M": 5, "V": 33}, "scalars": {"temperature": 2.0, "reduction": "none"}},
        {"dims": {"M": 2, "V": 17000}, "scalars": {"temperature": 2.0}},
        {"dims": {"M": 2, "V": 17000}, "scalars": {"temperature": 2.0, "reduction": "none"}},
    ],
    contract=Contract(
        identifier="ops.kl_divergence.probabilities", gradients="promised", accumulate="float32",
        preconditions=("a term whose target has probability 0 is 0, whatever the input",),
    ),
    work=Work(bytes="2*M*V*itemsize", flops="6*M*V"),
)  # fmt: skip
