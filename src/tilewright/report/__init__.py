"""What people and machines read: terminal, JSON, JUnit, SARIF."""

from __future__ import annotations

from pathlib import Path

from ..errors import UserError
from ..prove.verdict import Verdict
from . import junit as junit_report
from . import sarif as sarif_report
from . import terminal

__all__ = ["terminal", "write", "write_text"]


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
