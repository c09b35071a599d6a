"""Rotary embedding of queries and keys of grouped heads, in halves, from tables; backward turns the gradients back."""

import torch
from common import HALF, Kernel, task

from tilewright.task import Dim, TensorSpec, Values


def _turned(x, cos, sin):
    a, b = x.chunk(2, -1)
    return x * torch.cat((cos, cos), -1) + torch.cat((-b, a), -1) * torch.cat((sin, sin), -1)


def reference(q, k, cos, sin):
    """Heads lie behind the tokens in memory, as projections give them: dims 1 and 2 are swapped as a view."""
    return _turned(q.transpose(1, 2), cos, sin), _turned(k.transpose(1, 2), cos, sin)


def gradient(dq, dk, cos, sin):
    return _turned(dq.transpose(1, 2), cos, -sin), _turned(dk.transpose(1, 2), cos, -sin)


def given(*names):
    tall = {n: TensorSpec(("B", "S", h, "2*R"), dtypes=HALF) for n, h in zip(names, ("H", "G"), strict=True)}
    table = TensorSpec("S R", dtypes=HALF, values=Values(kind="uniform", low=-1.0, high=1.0))
    return {**tall, "cos": table, "sin": table}


DIMS = {"B": Dim(1, 64), "H": Dim(1, 64), "G": Dim(1, 64), "S": Dim(1, 1 << 16), "R": Dim(1, 128)}
SMALL = [{"B": 2, "H": 4, "G": 2, "S": 9, "R": 16}, {"B": 1, "H": 3, "G": 1, "S": 17, "R": 20}]
MOVED = "(2*B*S*(H+G)*2*R + 2*S*R)*itemsize"

FORWARD = task("rope.forward", reference, given("q", "k"), DIMS, SMALL, moved=MOVED, flops="6*B*S*(H+G)*R",
               peers=("h200_peers.liger_rope",))  # fmt: skip
BACKWARD = task("rope.backward", gradient, given("dq", "dk"), DIMS, SMALL, moved=MOVED, flops="6*B*S*(H+G)*R",
                peers=("h200_peers.liger_rope_backward",))  # fmt: skip

ADAPTER = """
def timed(q, k, cos, sin):
    q, k = q.transpose(1, 2), k.transpose(1, 2)
    p, r = q.new_empty(q.shape), k.new_empty(k.shape)
    rotate(q, k, p, r, cos, sin, None, False, {sign})
    return p, r
"""
KERNELS = {
    "forward": Kernel("rope", "timed", ADAPTER.format(sign=1.0)),
    "backward": Kernel("rope", "timed", ADAPTER.format(sign=-1.0)),
}
GRID = {
    "headline": [{"B": 4, "H": 32, "G": 8, "S": 4096, "R": 64}, {"B": 1, "H": 64, "G": 8, "S": 16384, "R": 64}],
    "more": [{"B": 1, "H": 32, "G": 8, "S": 16, "R": 64}, {"B": 3, "H": 12, "G": 12, "S": 1021, "R": 32},
             {"B": 4, "H": 28, "G": 4, "S": 4096, "R": 64}],
}  # fmt: skip
