"""A new operator's folder from ``template/``: everything but the kernel, which says that it is not written."""

from __future__ import annotations

import keyword
import re
from pathlib import Path
from string import Template

from ...errors import UserError

TEMPLATE = Path(__file__).parent / "template"
ROOM = Path(__file__).parents[1]


def make(name: str, room: Path = ROOM) -> list[Path]:
    """Write the files of operator ``name`` into ``room``; none is overwritten. Raises UserError for a name that can't be."""
    _lawful(name, room)
    folder = room / name
    texts = {p.name.removesuffix(".txt"): Template(p.read_text()) for p in sorted(TEMPLATE.glob("*.txt"))}
    try:
        folder.mkdir()
        (folder / "__init__.py").touch()
        for file, text in texts.items():
            (folder / file).write_text(text.substitute(name=name, NAME=name.upper()))
    except OSError as e:
        raise UserError(f"'{folder}' can't be written: {e.strerror}",
                        remedy="install Tilewright from a checkout: pip install -e .") from e  # fmt: skip
    return [folder / f for f in ("__init__.py", *texts)]


def _lawful(name: str, room: Path) -> None:
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name) or keyword.iskeyword(name):
        raise UserError(f"'{name}' is no name for an operator",
                        remedy="use lower-case letters, digits and underscores, beginning with a letter")  # fmt: skip
    if (room / name).exists():
        raise UserError(f"there is already '{room / name}'", remedy="choose another name, or edit what is there")
    taken = {line.split("(")[0] for api in room.glob("*/api.py") for line in api.read_text().split("\ndef ")[1:]}
    if name in taken:
        raise UserError(f"tilewright.ops has a function '{name}' already", remedy="tilewright ops list")
