"""Divergence of two attention distributions: grouped heads, two head dims, causal or not, each divergence and reduction."""

import math

import torch

from tilewright.task import Contract, Dim, Scalar, Task, TensorSpec, Tolerance, Work


def _logits(q, k, scale):
    """(batch, query heads, queries, keys); a key head serves as many query heads in a row as there are for each."""
    wide = torch.promote_types(q.dtype, torch.float32)
    q, k = q.to(wide), k.to(wide)
    group = q.shape[1] // k.shape[1] if k.shape[1] else 1
    k = k.unsqueeze(2).expand(k.shape[0], k.shape[1], group, k.shape[2], k.shape[3]).flatten(1, 2)
    with torch.autocast(q.device.type, enabled=False):
        return q @ k.transpose(-1, -2) * (1 / math.sqrt(q.shape[-1]) if scale is None else scale)


def _visible(logits, key_mask, causal):
    """Which keys a query sees."""
    queries, keys = logits.shape[-2:]
    seen = torch.ones(logits.shape, dtype=torch.bool, device=logits.device)
    if causal:
        seen = seen.tril(keys - queries)
    return seen if key_mask is None else seen & key_mask[:, None, None, :]


def _log_softmax(logits, seen):
    """``log p`` where a key is seen, else 0; and ``p``. A query that sees nothing has no distribution: 0 throughout."""
    some = seen.any(-1, keepdim=True)
    shown = torch.where(some, logits.masked_fill(~seen, -float("inf")), torch.zeros_like(logits))
    log_p = torch.log_softmax(shown, -1)
    return log_p.masked_fill(~seen, 0.0), torch.exp(log_p).masked_fill(~seen, 0.0)


def _middle(x, y):
    """``log((e^x + e^y) / 2)``."""
    high = torch.maximum(x, y).detach()
    return high + torch.log(0.5 * (torch.exp(x - high) + torch.exp(y - high)))


def _apart(p, difference):
    """``sum p * difference`` over keys."""
    return torch.where(p == 0, torch.zeros_like(p), p * difference).sum(-1)


def attention_kl(teacher_q, teacher_k, q, k, key_mask=None, query_mask=None, teacher_scale=None, scale=None, causal=False,
                 divergence="forward", reduction="mean"):  # fmt: skip
    """Divergence of the teacher's attention of each query from the student's, (batch, heads, queries), or a sum or mean."""
    teacher, student = _logits(teacher_q, teacher_k, teacher_scale), _logits(q, k, scale)
    seen = _visible(teacher, key_mask, causal)
    (log_p, p), (log_q, s) = _log_softmax(teacher, seen), _log_softmax(student, seen)
    if divergence == "forward":
        rows = _apart(p, log_p - log_q)
    elif divergence == "reverse":
        rows = _apart(s, log_q - log_p)
    else:
        middle = _middle(log_p, log_q)
        rows = 0.5 * (_apart(p, log_p - middle) + _apart(s, log_q - middle))
    if query_mask is not None:
        rows = torch.where(query_mask[:, None, :], rows, torch.zeros_like(rows))
    if reduction == "none":
        return rows
    if reduction == "sum":
        return rows.sum()
    return rows.sum() / (rows.numel() if query_mask is None else query_mask.sum() * rows.shape[1])


def reference(teacher_q, teacher_k, q, k, key_mask, query_mask, teacher_scale, scale, causal, divergence, reduction):
    options = (teacher_scale, scale, causal, divergence, reduction)
    return attention_kl(teacher_q, teacher_k, q, k, None, None, *options)


FLOATS = ("float32", "float16", "bfloat16")


def side(shape):
    return TensorSpec(shape, dtypes=FLOATS, requires_grad=True)


TASK = Task(
    name="attention_kl",
    reference=reference,
    inputs={
        "teacher_q": side("B G*R N T"),
        "teacher_k": side("B G M T"),
        "q": side("B G*R N D"),
        "k": side("B G M D"),
        "key_mask": Scalar(None),
        "query_mask": Scalar(None),
        "teacher_scale": Scalar(None, 0.25),
        "scale": Scalar(None),
        "causal": Scalar(False, True),
        "divergence": Scalar("forward", "reverse", "js"),
        "reduction": Scalar("none", "mean", "sum"),
    },
    dims={"B": Dim(0, 1 << 8), "G": Dim(1, 1 << 6), "R": Dim(1, 1 << 4), "N": Dim(0, 1 << 17), "M": Dim(0, 1 << 17),
          "T": Dim(1, 256), "D": Dim(1, 256)},
    workloads=[
        {"B": 1, "G": 2, "R": 2, "N": 20, "M": 40, "T": 24, "D": 16},
        {"dims": {"B": 1, "G": 1, "R": 2, "N": 40, "M": 40, "T": 8, "D": 16}, "scalars": {"causal": True}},
        {"dims": {"B": 1, "G": 1, "R": 1, "N": 70, "M": 70, "T": 8, "D": 8},
         "scalars": {"causal": True, "divergence": "js"}},
        {"dims": {"B": 1, "G": 1, "R": 2, "N": 20, "M": 75, "T": 16, "D": 8}, "scalars": {"divergence": "reverse"},
         "dtype": "bfloat16"},
    ],
    contract=Contract(
        identifier="ops.attention_kl", gradients="promised", accumulate="float32",
        # A divergence is a difference of logarithms: what is left of equal ones has their rounding.
        tolerance=Tolerance(atol=2.0**-20),
        preconditions=("a query that sees no key gives 0",),
    ),
    work=Work(bytes="B*G*(R*N + M)*(T + D)*itemsize + 4*B*G*R*N", flops="2*B*G*R*N*M*(T + D)"),
)  # fmt: skip
