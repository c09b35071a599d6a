"""Functions of other packages that the task names: ``baselines=("liger_kernel.ops.softmax.softmax",)``. Called with the
task's inputs in order; files named there are kernels beside the problem."""

import importlib.util

from ..record import Kind
from . import Context, Offer
from .files import file_offer

NAME = "peers"
SUFFIXES = (".py", ".c", ".cu")


def offer(context: Context) -> list[Offer]:
    others = [b for b in context.sheet.baselines if not b.startswith("vendor=")]
    return [
        file_offer(str(context.folder / b)) if b.partition("::")[0].endswith(SUFFIXES) else named(context, b, "peer")
        for b in others
    ]


def named(context: Context, name: str, kind: Kind) -> Offer:
    """A function by its dotted name; unavailable where its package is not installed."""
    package = name.partition(".")[0]
    if importlib.util.find_spec(package) is None:
        return Offer(name, kind, None, f"the package '{package}' is not installed")
    return Offer(name, kind, context.itself(name, f"peer:{name}"))
