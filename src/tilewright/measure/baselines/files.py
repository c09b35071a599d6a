"""Kernel files that the caller names: another version, another language, or the kernel itself."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from ...kernel import read
from ..hand import Source
from . import Context, Offer

NAME = "files"


def offer(context: Context) -> list[Offer]:
    return [file_offer(f, name) for f, name in names(context.files).items()]


def names(files: Sequence[str]) -> dict[str, str]:
    """What each file is called: its name, with as many folders, or the entry, as tell it from the others.

    >>> names(["a/kernel.c", "b/kernel.c", "right.py"])
    {'a/kernel.c': 'a/kernel.c', 'b/kernel.c': 'b/kernel.c', 'right.py': 'right.py'}
    """
    found = {f: Path(f.partition("::")[0]).name for f in files}
    counted = Counter(found.values())
    return {f: name if counted[name] == 1 else "/".join(Path(f).parts[-2:]) if _apart(files) else f
            for f, name in found.items()}  # fmt: skip


def _apart(files: Sequence[str]) -> bool:
    """Whether the last folder tells all files apart."""
    return len({Path(f).parts[-2:] for f in files}) == len(set(files))


def file_offer(spec: str, name: str = "") -> Offer:
    """A kernel file as a baseline. Raises KernelError for one that can't be read."""
    name = name or Path(spec.partition("::")[0]).name
    return Offer(name, "file", Source(name, kernel=read(spec)), path=spec)
