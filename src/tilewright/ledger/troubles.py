"""A database's complaint, said as a ``LedgerError`` that a person can act on."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from ..errors import LedgerError
from .lawfulness import MARK

KEPT = "what was recorded before is safe"
MOVE = "name another ledger with --ledger PATH or TILEWRIGHT_LEDGER"


@contextmanager
def told(name: str, timeout: float) -> Iterator[None]:
    """Turn the database's exceptions inside the block into LedgerErrors about the ledger called ``name``."""
    try:
        yield
    except DBAPIError as e:
        raise _explain(name, str(e.orig), timeout) from e
    except sqlite3.Error as e:
        raise _explain(name, str(e), timeout) from e
    except SQLAlchemyError as e:
        raise LedgerError(f"ledger {name}: {str(e).splitlines()[0]}", remedy=MOVE) from e


def _explain(name: str, complaint: str, timeout: float) -> LedgerError:
    first = complaint.strip().splitlines()[0] if complaint.strip() else "no reason given"
    low = first.lower()
    if MARK in first:
        return LedgerError(f"the ledger refused this record: {first.split(MARK + ': ', 1)[1]}", detail=f"ledger {name}")
    for signs, what, remedy in _COMPLAINTS:
        if any(s in low for s in signs):
            return LedgerError(f"ledger {name} {what.format(timeout=timeout)}", remedy=remedy, detail=f"({first})")
    return LedgerError(f"ledger {name}: {first}", remedy=MOVE)


_COMPLAINTS: tuple[tuple[tuple[str, ...], str, str], ...] = (
    (("is locked", "lock timeout", "table is locked"), "is locked by another process (waited {timeout:g} s)",
     "wait for the other run to end, or find it with `fuser FILE`; " + MOVE),
    (("disk is full", "no space left"), f"can't grow: the disk is full; {KEPT}",
     "free some space and run again, or " + MOVE),
    (("disk i/o error",), f"can't be written: the disk refuses (full, over quota, or failing); {KEPT}",
     "free some space or check the disk and run again, or " + MOVE),
    (("readonly database", "read-only"), "can't be written: no permission to write the file or its folder",
     "change its permissions, or " + MOVE),
    (("unable to open", "permission denied"), "can't be opened: no permission, or the folder does not exist",
     "check the path and its permissions, or " + MOVE),
    (("not a database", "file is encrypted"), "is not a Tilewright ledger: the file is not a SQLite database", MOVE),
    (("malformed",), "is damaged",
     "restore it from a copy, or salvage it with `sqlite3 FILE .recover | sqlite3 NEW`; " + MOVE),
    (("connection refused", "could not connect", "could not translate", "connection failed", "connection is bad"),
     "can't be reached: no database server answers there", "check host, port and that the server runs, or " + MOVE),
)  # fmt: skip
