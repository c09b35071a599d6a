"""The reference through torch.compile with max-autotune. On the CPU that tunes matrix products only."""

from . import Context, Offer
from .compiled import lacks

NAME = "max-autotune"


def offer(context: Context) -> list[Offer]:
    missing = lacks(context)
    source = None if missing else context.itself(NAME, "max-autotune")
    return [Offer(NAME, "max-autotune", source, missing)]
