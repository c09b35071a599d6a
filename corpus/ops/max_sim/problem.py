"""Late interaction, padded, with masks on both sides, with gradients; documents of small integers, so that many tie."""

import torch

from tilewright.task import Contract, Dim, Task, TensorSpec, Values, Work, integers


def wide(*tensors):
    """In the accumulating dtype: float32, or float64 where an input has it."""
    dtype = torch.float32
    for t in tensors:
        dtype = torch.promote_types(dtype, t.dtype) if t.is_floating_point() else dtype
    return [t.to(dtype) for t in tensors]


def _maximum(similar):
    """Of the last dim; of nothing it is -inf."""
    if not similar.shape[-1]:
        similar = torch.cat([similar, similar.new_full((*similar.shape[:-1], 1), -float("inf"))], -1)
    return similar.max(-1).values


def _best(similar, q_mask, d_mask):
    """Sum over query tokens (second last dim) of the maximum over document tokens (last dim)."""
    if d_mask is not None:
        similar = similar.masked_fill(~d_mask, -float("inf"))
    best = _maximum(similar)
    if q_mask is not None:
        best = torch.where(q_mask, best, torch.zeros_like(best))
    return best.sum(-1)


def _all_pairs(q, d):
    """(queries, documents, query tokens, document tokens) products."""
    with torch.autocast(q.device.type, enabled=False):
        flat = q.reshape(-1, q.shape[-1]) @ d.reshape(-1, d.shape[-1]).transpose(0, 1)
    return flat.reshape(q.shape[0], q.shape[1], d.shape[0], d.shape[1]).transpose(1, 2)


def _sides(q_mask, d_mask):
    """Masks as they broadcast to the products of all pairs."""
    return None if q_mask is None else q_mask[:, None], None if d_mask is None else d_mask[None, :, None]


def max_sim(q, d, q_mask=None, d_mask=None):
    """(queries, documents) scores of ``q`` (queries, tokens, features) with ``d`` (documents, tokens, features)."""
    return _best(_all_pairs(*wide(q, d)), *_sides(q_mask, d_mask))


def reference(q, d, q_mask, d_mask):
    return max_sim(q, d, q_mask, d_mask)


FLOATS = ("float32", "float16", "bfloat16")

TASK = Task(
    name="max_sim",
    reference=reference,
    inputs={
        "q": TensorSpec("A M D", dtypes=FLOATS, requires_grad=True),
        "d": TensorSpec("B N D", dtypes=FLOATS, values=integers(-2, 3), requires_grad=True),
        "q_mask": TensorSpec("A M", dtypes=("bool",), values=Values(kind="bool", p=0.8), dtype_group="mask"),
        "d_mask": TensorSpec("B N", dtypes=("bool",), values=Values(kind="bool", p=0.8), dtype_group="mask"),
    },
    dims={"A": Dim(0, 1 << 12), "M": Dim(0, 1 << 13), "B": Dim(0, 1 << 17), "N": Dim(0, 1 << 13), "D": Dim(1, 1 << 12)},
    workloads=[
        {"A": 3, "M": 8, "B": 4, "N": 40, "D": 2},
        {"A": 1, "M": 33, "B": 2, "N": 130, "D": 16},
        {"A": 2, "M": 5, "B": 300, "N": 3, "D": 8},
        {"dims": {"A": 2, "M": 20, "B": 3, "N": 70, "D": 136}, "dtype": "bfloat16"},
    ],
    contract=Contract(
        identifier="ops.max_sim", gradients="promised", accumulate="float32",
        preconditions=("of equal similarities the first counts in backward",),
    ),
    work=Work(bytes="(A*M*D + B*N*D)*itemsize + A*M + B*N + 4*A*B", flops="2*A*M*B*N*D"),
)  # fmt: skip
