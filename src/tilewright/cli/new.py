"""``tilewright new``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

What = Annotated[str, typer.Argument(help="What to make: op.", metavar="WHAT")]
Name = Annotated[str, typer.Argument(help="Its name.", metavar="NAME")]


def command(what: What, name: Name) -> None:
    """Begin an operator: a folder with its declaration, reference, function, task and a kernel that is still to be written.

    The hazards find it at once, and it fails them until the kernel is there.

    Example: tilewright new op gelu
    """
    from ..errors import UserError
    from ..ops._builder import new

    if what != "op":
        raise UserError(f"there is nothing called '{what}' to make", remedy="tilewright new op NAME")
    files = new.make(name)
    here = f"{Path.cwd()}/"
    for f in files:
        typer.echo(f"  {str(f).removeprefix(here)}")
    typer.echo(f"operator '{name}' is begun. Write reference.py and kernel.py, then:")
    typer.echo(f"  python -m pytest tests/ops/test_hazards.py -k {name}")
    typer.echo(f"  tilewright ops check {name}")
