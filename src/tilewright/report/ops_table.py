"""Operators for people: the list, one operator's sheet, and its kernels' verdicts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.table import Table
from rich.text import Text

from .terminal import console


def _registry() -> dict[str, Any]:
    import tilewright.ops  # noqa: F401  registers the operators
    from tilewright.ops._builder import REGISTRY

    return REGISTRY


def rows() -> list[dict[str, Any]]:
    """One row an operator."""
    return [{"name": n, "summary": b.op.summary, "dtypes": list(b.op.dtypes), "backward": b.op.backward is not None,
             "tuned": tuned(b.op.folder)} for n, b in sorted(_registry().items())]  # fmt: skip


def tuned(folder: Path) -> list[str]:
    """Cards for which the operator ships a measured configuration."""
    return sorted(p.stem for p in (folder / "tuned").glob("*.json"))


def sheet(name: str) -> dict[str, Any]:
    """All that an operator declares. Raises UserError for a name that is not there."""
    from tilewright.ops._builder import catalog

    _registry()
    op = catalog.find(name).op
    return {
        "name": op.name, "summary": op.summary, "function": f"tilewright.ops.{op.function}", "schema": op.schema,
        "dtypes": list(op.dtypes), "gradients": list(op.differentiable), "double_backward": op.double_backward,
        "determinism": op.determinism, "autocast": op.autocast, "memory": op.memory, "copies": op.copies,
        "error_bound": op.error_bound or "as the strict check judges: tilewright ops check " + name,
        "written_in_place": list(op.mutates), "notes": list(op.notes),
        "kernels": [{"task": str(op.folder / p.task), "kernel": f"{op.folder / p.kernel}::{p.entry}"} for p in op.pairs],
        "tuned_for": tuned(op.folder),
    }  # fmt: skip


def show_list(found: Sequence[dict[str, Any]]) -> None:
    table = Table(box=None, pad_edge=False)
    for head in ("operator", "dtypes", "backward", "tuned for", "what"):
        table.add_column(head, overflow="fold")
    for r in found:
        table.add_row(r["name"], ", ".join(r["dtypes"]), "yes" if r["backward"] else "no",
                      ", ".join(r["tuned"]) or "no card yet", Text(r["summary"]))  # fmt: skip
    console().print(table)


def show(found: Sequence[dict[str, Any]]) -> None:
    (s,) = found
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    for key, value in s.items():
        if key in ("kernels", "name", "notes") or value in ("", []):
            continue
        table.add_row(key.replace("_", " "), Text(", ".join(value) if isinstance(value, list) else str(value)))
    for k in s["kernels"]:
        table.add_row("check", Text(f"tilewright check --strict {_near(k['task'])} {_near(k['kernel'])}"))
    for note in s["notes"]:
        table.add_row("note", Text(note))
    if not s["tuned_for"]:
        table.add_row("tuned for", Text("no card yet: the safe configuration runs, and no time was measured"))
    console().print(Text(s["name"], style="bold"))
    console().print(table)


def _near(path: str) -> str:
    here = str(Path.cwd()) + "/"
    return path.removeprefix(here)
