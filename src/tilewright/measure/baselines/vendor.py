"""The vendor library's routine that the task names: ``baselines=("vendor=torch.nn.functional.softmax",)``."""

from . import Context, Offer
from .peers import named

NAME = "vendor"


def offer(context: Context) -> list[Offer]:
    found = [b.partition("=")[2] for b in context.sheet.baselines if b.startswith("vendor=")]
    if not found:
        return [Offer(NAME, "vendor", None, "the task names no routine of a vendor's library")]
    return [named(context, name, "vendor") for name in found]
