"""Linear layer with bias and cross entropy of its logits: every option, each reduction; with gradients."""

import torch

from tilewright.task import Contract, Dim, Scalar, Task, TensorSpec, Values, Work, integers


def linear_cross_entropy(
    x: torch.Tensor,
    weight: torch.Tensor,
    target: torch.Tensor,
    bias: torch.Tensor | None = None,
    class_weight: torch.Tensor | None = None,
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
    z_loss: float = 0.0,
    softcap: float = 0.0,
    reduction: str = "mean",
) -> torch.Tensor:
    """Cross entropy of ``x @ weight.T + bias``: each row's, or their sum or mean by the weights of the targets."""
    wide = torch.promote_types(x.dtype, torch.float32)
    with torch.autocast(x.device.type, enabled=False):  # logits keep the dtype of x
        logits = torch.nn.functional.linear(x, weight, bias).to(wide)
    if softcap:
        logits = softcap * torch.tanh(logits / softcap)
    live = target != ignore_index
    known = live & (target >= 0) & (target < logits.shape[-1])
    at = torch.where(known, target, torch.zeros_like(target))
    each = torch.ones_like(at, dtype=wide) if class_weight is None else class_weight.to(wide)[at]
    log_p = torch.log_softmax(logits, -1)
    loss = -each * log_p.gather(-1, at.unsqueeze(-1)).squeeze(-1)
    if label_smoothing:
        share = log_p if class_weight is None else class_weight.to(wide) * log_p
        loss = (1 - label_smoothing) * loss - label_smoothing / logits.shape[-1] * share.sum(-1)
    if z_loss:
        loss = loss + z_loss * each * torch.logsumexp(logits, -1) ** 2
    loss = torch.where(live, torch.where(known, loss, torch.full_like(loss, float("nan"))), torch.zeros_like(loss))
    if reduction == "none":
        return loss
    return loss.sum() if reduction == "sum" else loss.sum() / torch.where(known, each, torch.zeros_like(each)).sum()



def reference(x, weight, target, bias, ignore_index, label_smoothing, z_loss, softcap, reduction):
    options = (ignore_index, label_smoothing, z_loss, softcap, reduction)
    return linear_cross_entropy(x, weight, target, bias, None, *options)


FLOATS = ("float32", "float16", "bfloat16")

TASK = Task(
    name="linear_cross_entropy",
    reference=reference,
    inputs={
        "x": TensorSpec("M K", dtypes=FLOATS, requires_grad=True),
        "weight": TensorSpec("V K", dtypes=FLOATS, values=Values(std=0.25), requires_grad=True),
        "target": TensorSpec("M", dtypes=("int64",), values=integers(0, "V"), dtype_group="target"),
        "bias": TensorSpec("V", dtypes=FLOATS, requires_grad=True),
        "ignore_index": Scalar(-100, 0),
        "label_smoothing": Scalar(0.0, 0.125),
        "z_loss": Scalar(0.0, 0.0078125),
        "softcap": Scalar(0.0, 16.0),
        "reduction": Scalar("mean", "none", "sum"),
    },
    dims={"M": Dim(0, 1 << 20), "K": Dim(1, 1 << 14), "V": Dim(1, 1 << 18)},
    workloads=[
        {"M": 12, "K": 24, "V": 50},
        {"dims": {"M": 300, "K": 8, "V": 9}, "scalars": {"ignore_index": 0, "label_smoothing": 0.125}},
        {"dims": {"M": 300, "K": 8, "V": 9}, "scalars": {"reduction": "none", "z_loss": 0.0078125}},
        {"dims": {"M": 300, "K": 4, "V": 700}},
    ],
    contract=Contract(
        identifier="ops.linear_cross_entropy", gradients="promised", accumulate="float32",
        preconditions=("targets are classes or ignore_index; another one gives NaN",),
    ),
    work=Work(bytes="(M*K + V*K + V)*itemsize + 8*M", flops="2*M*K*V"),
)  # fmt: skip
