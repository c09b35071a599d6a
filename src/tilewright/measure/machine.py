"""``machine``: the ceilings of this machine, measured and kept in the ledger as a blob of JSON."""

from __future__ import annotations

from ..api import open_ledger
from . import ceilings
from .record import Ceilings


def measure(device: str = "cpu", *, ledger: str | None = None) -> Ceilings:
    """Measure the ceilings of ``device`` and keep them. Raises EnvironmentProblem where they can't be measured."""
    found = ceilings.ceilings(device)
    open_ledger(ledger).put_blob(found.model_dump_json().encode())
    return found
