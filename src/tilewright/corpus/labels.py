"""Labels: what each kernel of the corpus is, and what the verifier is expected to say about it."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Literal

from pydantic import ValidationError

from ..audit import SUFFIXES, Pair
from ..errors import UserError
from ..task.tensors import Model

Expected = Literal["accept", "reject", "incomplete"]


class Label(Model):
    """``gate``: gates that are expected to reject it. ``family``: id in the catalogue of faults. ``needs``: what sees it
    beyond the functional gates (``ir``, ``gpu``, ``bench``); then it counts as open until that exists. ``bench``: by what a
    measurement refuses it; such a kernel behaves while it is checked. ``usual``: what the field's usual check says
    (``passes``, ``fails``). ``open``: why no gate sees it yet."""

    default: Expected
    strict: Expected
    gate: str | tuple[str, ...] = ()
    family: str = ""
    needs: Literal["", "ir", "gpu", "bench"] = ""
    bench: Literal["", "wrong output", "other output", "clocks", "late", "busy", "floor"] = ""
    usual: Literal["passes", "fails", "?"] = "?"
    note: str = ""
    open: str = ""

    @property
    def gates(self) -> tuple[str, ...]:
        return (self.gate,) if isinstance(self.gate, str) else self.gate

    def expected(self, mode: str) -> Expected:
        return self.strict if mode == "strict" else self.default

    @property
    def right(self) -> bool:
        """A right control: expected to be accepted in both modes."""
        return self.default == "accept" and self.strict != "reject"


def read_labels(folder: Path) -> list[tuple[Pair, Label]]:
    """All labelled kernels below ``folder``, by name. Raises UserError for a label without a file, a file without a
    label, and a malformed label, with the place."""
    found: list[tuple[Pair, Label]] = []
    for path in sorted(folder.rglob("labels.toml")):
        try:
            tables = tomllib.loads(path.read_text())
        except tomllib.TOMLDecodeError as e:
            raise UserError(f"labels can't be read: {e}", where=str(path)) from None
        files = {
            p.stem: p
            for p in path.parent.iterdir()
            if p.suffix in SUFFIXES and p.stem.split("_")[0] in ("right", "wrong")
        }
        if missing := set(tables) ^ set(files):
            raise UserError(f"labels and kernel files differ: {', '.join(sorted(missing))}", where=str(path))
        for stem, body in sorted(tables.items()):
            kernel = files[stem]
            try:
                label = Label.model_validate(body)
            except ValidationError as e:
                raise UserError(
                    f"label [{stem}]: {e.errors()[0]['msg']} ({e.errors()[0]['loc']})", where=str(path)
                ) from None
            found.append((Pair(str(kernel.relative_to(folder)), path.parent / "problem.py", kernel), label))
    if not found:
        raise UserError(f"no labels.toml below '{folder}'", remedy="tilewright corpus corpus")
    return found
