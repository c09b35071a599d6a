"""What people and machines read: terminal, JSON, JUnit, SARIF."""

from __future__ import annotations

import os
from pathlib import Path

from ..errors import UserError
from ..prove.verdict import Verdict
from . import junit as junit_report
from . import sarif as sarif_report
from . import terminal

__all__ = ["must_be_writable", "terminal", "write", "write_text"]


def must_be_writable(*paths: Path | None) -> None:
    """Raise UserError for a report file that can't be written, before the work that it is to report. Makes nothing."""
    for path in paths:
        if path is None or str(path) == "-":
            continue
        if problem := _unwritable(path):
            raise UserError(f"can't write '{path}': {problem}", remedy="choose another file")


def _unwritable(path: Path) -> str:
    """Why a file can't be written there; empty if it can."""
    if path.is_dir():
        return "it is a folder"
    if path.exists():
        return "" if os.access(path, os.W_OK) else "permission denied"
    above = next(p for p in (*path.absolute().parents,) if os.path.lexists(p))
    if not above.is_dir():
        return f"'{above}' is not a folder"
    return "" if os.access(above, os.W_OK | os.X_OK) else f"'{above}' is not writable"


def write_text(path: Path, text: str) -> None:
    """Write a report file (``-``: standard output). Raises UserError where that is impossible."""
    if str(path) == "-":
        print(text)
        return
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    except OSError as e:
        raise UserError(f"can't write '{path}': {e.strerror}", remedy="choose another file") from None


def write(verdict: Verdict, *, json: Path | None = None, junit: Path | None = None, sarif: Path | None = None) -> None:
    """Write the reports that were asked for."""
    if json is not None:
        write_text(json, verdict.model_dump_json(indent=2))
    if junit is not None:
        write_text(junit, junit_report.render([(verdict.kernel, verdict)]))
    if sarif is not None:
        write_text(sarif, sarif_report.render([verdict]))
