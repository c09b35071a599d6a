"""Kernel files that the caller names: another version, another language, or the kernel itself."""

from pathlib import Path

from ...kernel import read
from ..hand import Source
from . import Context, Offer

NAME = "files"


def offer(context: Context) -> list[Offer]:
    return [file_offer(f) for f in context.files]


def file_offer(spec: str) -> Offer:
    """A kernel file as a baseline. Raises KernelError for one that can't be read."""
    name = Path(spec.partition("::")[0]).name
    return Offer(name, "file", Source(name, kernel=read(spec)), path=spec)
