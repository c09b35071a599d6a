"""Cross entropy of rows of logits with class weights; a loss for each row, which does not depend on its neighbours."""

import torch

from tilewright.task import Contract, Dim, Scalar, Task, TensorSpec, Values, Work, integers


def reference(logits, target, weight, ignore_index, label_smoothing, z_loss, softcap, reduction):
    wide = torch.promote_types(logits.dtype, torch.float32)
    x, weight = logits.to(wide), weight.to(wide)
    if softcap:
        x = softcap * torch.tanh(x / softcap)
    live = target != ignore_index
    log_p = torch.log_softmax(x, -1)
    target = target.where(live, torch.zeros_like(target))
    each = weight[target]
    loss = -each * log_p.gather(1, target[:, None])[:, 0]
    if label_smoothing:
        loss = (1 - label_smoothing) * loss - label_smoothing / x.shape[1] * (weight * log_p).sum(-1)
    if z_loss:
        loss = loss + z_loss * each * torch.logsumexp(x, -1) ** 2
    loss = torch.where(live, loss, torch.zeros_like(loss))
    if reduction == "none":
        return loss
    return loss.sum() if reduction == "sum" else loss.sum() / torch.where(live, each, torch.zeros_like(each)).sum()


FLOATS = ("float32", "float16", "bfloat16")

TASK = Task(
    name="cross_entropy_weighted",
    reference=reference,
    inputs={
        "logits": TensorSpec("M V", dtypes=FLOATS, values=Values(std=3.0), requires_grad=True),
        "target": TensorSpec("M", dtypes=("int64",), values=integers(0, "V"), dtype_group="target"),
        "weight": TensorSpec("V", dtypes=("float32",), values=Values(kind="uniform", low=0.25, high=2.0),
                             dtype_group="weight"),
        "ignore_index": Scalar(-100, 0),
        "label_smoothing": Scalar(0.0, 0.125),
        "z_loss": Scalar(0.0, 0.0078125),
        "softcap": Scalar(0.0, 16.0),
        "reduction": Scalar("none", "mean", "sum"),
    },
    dims={"M": Dim(0, 1 << 20), "V": Dim(1, 1 << 18)},
    workloads=[
        {"M": 24, "V": 100},
        {"dims": {"M": 40, "V": 9}, "scalars": {"reduction": "mean", "label_smoothing": 0.125, "ignore_index": 0}},
        {"dims": {"M": 3, "V": 33000}, "scalars": {"label_smoothing": 0.125, "z_loss": 0.0078125}},
    ],
    contract=Contract(
        identifier="ops.cross_entropy.weighted", gradients="promised", accumulate="float32", batch_invariant=("M",),
        preconditions=("targets are classes or ignore_index; another one gives NaN",),
    ),
    work=Work(bytes="M*V*itemsize + 12*M + 4*V", flops="6*M*V"),
)  # fmt: skip
