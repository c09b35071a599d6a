"""Head of a sparse retriever, with gradients; hidden states of small integers, so that many logits tie."""

import torch

from tilewright.task import Contract, Dim, Task, TensorSpec, Values, Work, integers


def sparse_retrieval_head(x, weight, bias=None, mask=None):
    """``log(1 + max(0, best))``, ``best`` being the largest logit of a word over the positions of a sequence.

    ``x`` (sequences, positions, features), ``weight`` (words, features), ``bias`` (words), ``mask`` (sequences, positions).
    """
    wide = torch.promote_types(x.dtype, torch.float32)
    with torch.autocast(x.device.type, enabled=False):
        logits = torch.nn.functional.linear(x.to(wide), weight.to(wide), None if bias is None else bias.to(wide))
    if mask is not None:
        logits = logits.masked_fill(~mask.unsqueeze(-1), -float("inf"))
    if not logits.shape[1]:
        logits = torch.cat([logits, logits.new_full((logits.shape[0], 1, logits.shape[2]), -float("inf"))], 1)
    return torch.log1p(torch.relu(logits.max(1).values))


def reference(x, weight, bias, mask):
    return sparse_retrieval_head(x, weight, bias, mask)


FLOATS = ("float32", "float16", "bfloat16")

TASK = Task(
    name="sparse_retrieval_head",
    reference=reference,
    inputs={
        "x": TensorSpec("B S H", dtypes=FLOATS, values=integers(-2, 3), requires_grad=True),
        "weight": TensorSpec("V H", dtypes=FLOATS, values=Values(std=0.25), requires_grad=True),
        "bias": TensorSpec("V", dtypes=FLOATS, requires_grad=True),
        "mask": TensorSpec("B S", dtypes=("bool",), values=Values(kind="bool", p=0.8), dtype_group="mask"),
    },
    dims={"B": Dim(0, 1 << 14), "S": Dim(0, 1 << 13), "H": Dim(1, 1 << 13), "V": Dim(0, 1 << 18)},
    workloads=[
        {"B": 3, "S": 20, "H": 2, "V": 100},
        {"B": 2, "S": 150, "H": 16, "V": 33},
        {"dims": {"B": 2, "S": 30, "H": 136, "V": 70}, "dtype": "bfloat16"},
    ],
    contract=Contract(
        identifier="ops.sparse_retrieval_head", gradients="promised", accumulate="float32",
        preconditions=("of equal logits the first position counts in backward",),
    ),
    work=Work(bytes="(B*S*H + V*H + V)*itemsize + B*S + 4*B*V", flops="2*B*S*H*V"),
)  # fmt: skip
