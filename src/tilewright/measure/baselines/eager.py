"""The reference as it stands, in eager PyTorch."""

from . import Context, Offer

NAME = "eager"


def offer(context: Context) -> list[Offer]:
    return [Offer(NAME, "eager", context.itself(NAME, "eager"))]
