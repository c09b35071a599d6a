"""Everything Tilewright raises on purpose.

    TilewrightError
    ├── UserError            the caller's files or arguments; exit code 2
    │   ├── TaskError        the problem file (reference, inputs, contract)
    │   ├── KernelError      the kernel file (before it runs; once it runs, faults are findings)
    │   └── LedgerError      the ledger can't be opened, read or written
    ├── EnvironmentProblem   this machine: no compiler, no namespaces, unsupported Triton; exit code 2
    ├── Unsupported          our own limit: names the operation and where it was met; never a pass
    └── InternalError        a broken promise of ours; please report

A message says what, where (``file:line``), what was expected and what was got, and what to do next.
Context is added once, where the command line catches the error.
"""

from __future__ import annotations


class TilewrightError(Exception):
    """Root of the tree. ``what`` is one sentence; ``where`` a ``file:line``; ``remedy`` the next step."""

    def __init__(self, what: str, *, where: str | None = None, remedy: str | None = None, detail: str | None = None):
        super().__init__(what)
        self.what = what
        self.where = where
        self.remedy = remedy
        self.detail = detail

    def __str__(self) -> str:
        lines = [self.what if not self.where else f"{self.where}: {self.what}"]
        if self.detail:
            lines.append(self.detail)
        if self.remedy:
            lines.append(f"Try: {self.remedy}")
        return "\n".join(lines)


class UserError(TilewrightError):
    """The caller's files or arguments are at fault."""


class TaskError(UserError):
    """The problem file is at fault: reference, inputs, or contract."""


class KernelError(UserError):
    """The kernel file can't be read or has no entry point."""


class LedgerError(UserError):
    """The ledger can't be opened, read or written."""


class EnvironmentProblem(TilewrightError):
    """This machine lacks something that the work needs."""


class Unsupported(TilewrightError):
    """Tilewright's own limit. Leads to ``inconclusive``, never to a pass."""


class InternalError(TilewrightError):
    """A promise inside Tilewright was broken."""


LONGEST = 400  # characters of somebody else's message that are repeated


def brief(text: str, rest: str) -> str:
    """Somebody else's message, cut where it is endless. ``rest``: where the whole of it can be seen."""
    if len(text) <= LONGEST:
        return text
    return f"{text[:LONGEST].rstrip()} … (cut after {LONGEST} of {len(text):,} characters; the rest: {rest})"
