"""Rotary embedding of q and k with a line of angles for each token of each sequence, as models pass them."""

import torch

from tilewright.task import Contract, Dim, Scalar, Task, TensorSpec, Values, Work


def turned(x, cos, sin, interleaved):
    wide = torch.promote_types(x.dtype, torch.float32)
    half = cos.shape[-1]
    c, s, y = cos.to(wide), sin.to(wide), x.to(wide)
    rotary, rest = y[..., : 2 * half], y[..., 2 * half :]
    if interleaved:
        a, b = rotary[..., 0::2], rotary[..., 1::2]
        rotary = torch.stack((a * c - b * s, b * c + a * s), dim=-1).flatten(-2)
    else:
        a, b = rotary.chunk(2, dim=-1)
        rotary = torch.cat((a * c - b * s, b * c + a * s), dim=-1)
    return torch.cat((rotary, rest), dim=-1).to(x.dtype)


def reference(q, k, cos, sin, interleaved=False):
    c, s = cos[:, None], sin[:, None]
    return turned(q, c, s, interleaved), turned(k, c, s, interleaved)


FLOATS = ("float32", "float16", "bfloat16")
TABLE = Values(kind="uniform", low=-1.0, high=1.0)

TASK = Task(
    name="rope_tables",
    reference=reference,
    inputs={
        "q": TensorSpec(("B", "H", "S", "2*R+T"), dtypes=FLOATS, requires_grad=True),
        "k": TensorSpec(("B", "G", "S", "2*R+T"), dtypes=FLOATS, requires_grad=True),
        "cos": TensorSpec("B S R", dtypes=FLOATS, values=TABLE),
        "sin": TensorSpec("B S R", dtypes=FLOATS, values=TABLE),
        "interleaved": Scalar(False, True),
    },
    dims={
        "B": Dim(0, 1 << 16), "H": Dim(1, 128), "G": Dim(1, 128), "S": Dim(0, 1 << 20), "R": Dim(1, 256),
        "T": Dim(0, 512),
    },
    workloads=[
        {"B": 2, "H": 4, "G": 2, "S": 9, "R": 16, "T": 0},
        {"dims": {"B": 3, "H": 3, "G": 1, "S": 7, "R": 12, "T": 8}, "scalars": {"interleaved": True}},
    ],
    contract=Contract(identifier="ops.rope.tables", gradients="promised", batch_invariant=("B",)),
    work=Work(bytes="2*B*S*(H+G)*(2*R+T)*itemsize", flops="6*B*S*(H+G)*R"),
)  # fmt: skip
