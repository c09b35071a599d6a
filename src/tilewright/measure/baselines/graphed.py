"""Eager PyTorch replayed from a CUDA graph: eager without its launch overhead."""

from . import Context, Offer

NAME = "graph"


def offer(context: Context) -> list[Offer]:
    if not context.device.startswith("cuda"):
        return [Offer(NAME, "graph", None, "CUDA graphs need a GPU")]
    return [Offer(NAME, "graph", context.itself(NAME, "graph"))]
