"""Cross entropy of rows of logits: ignored targets, label smoothing, z-loss, soft caps, each reduction; with gradients."""

import torch

from tilewright.task import Contract, Dim, Scalar, Task, TensorSpec, Values, Work, integers


def cross_entropy(
    logits: torch.Tensor,
    target: torch.Tensor,
    weight: torch.Tensor | None = None,
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
    z_loss: float = 0.0,
    softcap: float = 0.0,
    reduction: str = "mean",
) -> torch.Tensor:
    """Loss of each row, or their sum or weighted mean. A row counts with the weight of its target."""
    wide = torch.promote_types(logits.dtype, torch.float32)
    x = logits.to(wide)
    if softcap:
        x = softcap * torch.tanh(x / softcap)
    live = target != ignore_index
    known = live & (target >= 0) & (target < x.shape[-1])
    at = torch.where(known, target, torch.zeros_like(target))
    each = torch.ones_like(at, dtype=wide) if weight is None else weight.to(wide)[at]
    log_p = torch.log_softmax(x, -1)
    loss = -each * log_p.gather(-1, at.unsqueeze(-1)).squeeze(-1)
    if label_smoothing:
        share = log_p if weight is None else weight.to(wide) * log_p
        loss = (1 - label_smoothing) * loss - label_smoothing / x.shape[-1] * share.sum(-1)
    if z_loss:
        loss = loss + z_loss * each * torch.logsumexp(x, -1) ** 2
    loss = torch.where(live, torch.where(known, loss, torch.full_like(loss, float("nan"))), torch.zeros_like(loss))
    if reduction == "none":
        return loss
    return loss.sum() if reduction == "sum" else loss.sum() / torch.where(known, each, torch.zeros_like(each)).sum()



def reference(logits, target, ignore_index, label_smoothing, z_loss, softcap, reduction):
    return cross_entropy(logits, target, None, ignore_index, label_smoothing, z_loss, softcap, reduction)


FLOATS = ("float32", "float16", "bfloat16")

TASK = Task(
    name="cross_entropy",
    reference=reference,
    inputs={
        "logits": TensorSpec("M V", dtypes=FLOATS, values=Values(std=3.0), requires_grad=True),
        "target": TensorSpec("M", dtypes=("int64",), values=integers(0, "V"), dtype_group="target"),
        "ignore_index": Scalar(-100, 0),
        "label_smoothing": Scalar(0.0, 0.125),
        "z_loss": Scalar(0.0, 0.0078125),
        "softcap": Scalar(0.0, 16.0),
        "reduction": Scalar("mean", "none", "sum"),
    },
    dims={"M": Dim(0, 1 << 20), "V": Dim(1, 1 << 18)},
    workloads=[
        {"M": 24, "V": 100},
        {"dims": {"M": 40, "V": 9}, "scalars": {"ignore_index": 0, "label_smoothing": 0.125, "z_loss": 0.0078125}},
        {"dims": {"M": 3, "V": 33000}, "scalars": {"reduction": "none", "softcap": 16.0, "label_smoothing": 0.125}},
    ],
    contract=Contract(
        identifier="ops.cross_entropy",
        gradients="promised",
        accumulate="float32",
        preconditions=("targets are classes or ignore_index; another one gives NaN",),
    ),
    work=Work(bytes="M*V*itemsize + 8*M", flops="5*M*V"),
)
