"""Finding a record by the first digits of its id, and reading it back."""

from __future__ import annotations

import difflib
import json
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from sqlalchemy import Connection, Row, select

from ..errors import LedgerError
from ..kernel.kernel import Kernel
from ..prove.finding import Finding
from ..prove.verdict import Verdict
from ..task.task import TaskSheet
from . import models as m
from .attempt_models import Attempt
from .records import FindingRecord, Found, VerdictRecord
from .search_models import SearchRun
from .store import Store

KINDS: dict[str, Any] = {
    "verdict": m.Verdict.id, "finding": m.Finding.id, "audit": m.Audit.id, "measurement": m.Measurement.id,
    "attempt": Attempt.id, "search": SearchRun.id,
    "kernel": m.Kernel.sha256, "task": m.Task.sha256, "blob": m.Blob.sha256,
}  # fmt: skip
RECENT = 2000
SHOWN = 5
BLOB_DIGITS = 12


class Lookup:
    """The reading half of ``Ledger``."""

    def __init__(self, store: Store):
        self.store = store

    def verdict(self, prefix: str) -> VerdictRecord:
        with self.store.read() as c:
            return _read_verdict(c, self._one(c, prefix, ("verdict",))[1])

    def latest(self) -> VerdictRecord | None:
        with self.store.read() as c:
            newest = c.execute(select(m.Verdict.id).order_by(m.Verdict.seq.desc()).limit(1)).scalar()
            return None if newest is None else _read_verdict(c, newest)

    def finding(self, prefix: str) -> FindingRecord:
        with self.store.read() as c:
            return _read_finding(c, self._one(c, prefix, ("finding",))[1])

    def find(self, prefix: str) -> Found:
        with self.store.read() as c:
            kind, id = self._one(c, prefix, tuple(KINDS))
            if kind == "verdict":
                return Found(kind, id, _read_verdict(c, id))
            if kind == "finding":
                return Found(kind, id, _read_finding(c, id))
            return Found(kind, id, _read_plain(c, kind, id))

    def _one(self, c: Connection, prefix: str, kinds: tuple[str, ...]) -> tuple[str, str]:
        """The only record among ``kinds`` whose id begins with ``prefix``; a whole id wins over longer ones."""
        wanted = prefix.strip().lower()
        matches = [(k, i) for k in kinds for i in _ids(c, k, wanted)]
        whole = [match for match in matches if match[1] == wanted]
        if len(whole or matches) == 1:
            return (whole or matches)[0]
        what = kinds[0] if len(kinds) == 1 else "record"
        if matches:
            shown = "\n".join(f"  {i[:12]}  {k}" for k, i in matches[:SHOWN])
            more = f"\n  and {len(matches) - SHOWN} more" if len(matches) > SHOWN else ""
            raise LedgerError(f"id '{prefix}' is ambiguous: {len(matches)} {what}s begin so", detail=shown + more,
                              remedy="give more digits")  # fmt: skip
        raise self._unknown(c, prefix, wanted, what, kinds)

    def _unknown(self, c: Connection, prefix: str, wanted: str, what: str, kinds: tuple[str, ...]) -> LedgerError:
        elsewhere = [(k, i) for k in KINDS if k not in kinds for i in _ids(c, k, wanted)]
        if elsewhere:
            kind, id = elsewhere[0]
            return LedgerError(
                f"'{prefix}' is no {what}, but the {kind} {id[:12]}", remedy=f"tilewright show {id[:12]}"
            )
        known = [str(i) for k in kinds if k != "blob" for i in c.execute(
            select(KINDS[k]).distinct().limit(RECENT)).scalars()]  # fmt: skip
        near = difflib.get_close_matches(wanted, [i[:12] for i in known], n=3, cutoff=0.5)
        detail = f"Near: {', '.join(near)}" if near else None if known else f"It has no {what}s yet."
        return LedgerError(
            f"the ledger {self.store.name} has no {what} '{prefix}'", detail=detail,
            remedy="check the id, or name the ledger it is in with --ledger or TILEWRIGHT_LEDGER",
        )  # fmt: skip


def _ids(c: Connection, kind: str, wanted: str) -> list[str]:
    if not wanted or set(wanted) - set("0123456789abcdef") or (kind == "blob" and len(wanted) < BLOB_DIGITS):
        return []
    column = KINDS[kind]
    return [str(i) for i in c.execute(select(column).where(column.startswith(wanted)).distinct().limit(50)).scalars()]


def _files(c: Connection, table: Any, owner: Any, sha: str) -> dict[str, str]:
    rows = c.execute(select(table.name, table.blob).where(owner == sha).order_by(table.position))
    return {r.name: r.blob for r in rows}


def _read_verdict(c: Connection, id: str) -> VerdictRecord:
    row = c.execute(select(m.Verdict.__table__).where(m.Verdict.id == id)).one()
    try:
        verdict = Verdict.model_validate(json.loads(row.body))
        sheet = _read_sheet(c, row)
    except ValidationError as e:
        problem = e.errors()[0]
        raise LedgerError(f"verdict {id} was recorded in a form that this version can't read",
                          detail=f"{'.'.join(map(str, problem['loc']))}: {problem['msg']}",
                          remedy="use the version of Tilewright that recorded it: "
                                 + (json.loads(row.versions).get("tilewright") or "unknown")) from None  # fmt: skip
    machine = c.execute(select(m.Machine.body).where(m.Machine.sha256 == row.machine)).scalar_one()
    return VerdictRecord(id=id, verdict=verdict, kernel=_read_kernel(c, row), sheet=sheet, contract=row.contract,
                         device_class=row.device_class, machine=json.loads(machine), created=row.created)  # fmt: skip


def _read_sheet(c: Connection, row: Row[Any]) -> TaskSheet:
    text = c.execute(select(m.Task.sheet).where(m.Task.sha256 == row.task)).scalar_one()
    return TaskSheet.model_validate(json.loads(text) | {"path": row.task_path})


def _read_kernel(c: Connection, row: Row[Any]) -> Kernel:
    import zlib

    kernel = c.execute(select(m.Kernel.__table__).where(m.Kernel.sha256 == row.kernel)).one()
    files = _files(c, m.KernelFile, m.KernelFile.kernel, row.kernel)
    main = files.get(Path(row.kernel_path).name) or next(iter(files.values()))
    blob = c.execute(select(m.Blob.encoding, m.Blob.data).where(m.Blob.sha256 == main)).one()
    text = zlib.decompress(blob.data) if blob.encoding == "zlib" else bytes(blob.data)
    return Kernel(path=row.kernel_path, language=kernel.language, entry=kernel.entry, files=files, text=text.decode())


def _read_finding(c: Connection, id: str) -> FindingRecord:
    rows = c.execute(select(m.Finding.verdict, m.Finding.body).where(m.Finding.id == id)
                     .order_by(m.Finding.seq.desc())).all()  # fmt: skip
    return FindingRecord(id=id, finding=Finding.model_validate(json.loads(rows[0].body)),
                         verdict=_read_verdict(c, rows[0].verdict), seen_in=tuple(r.verdict for r in rows))  # fmt: skip


def _read_plain(c: Connection, kind: str, id: str) -> dict[str, Any]:
    columns = [col for col in KINDS[kind].class_.__table__.columns if col.name != "data"]
    row = c.execute(select(*columns).where(KINDS[kind] == id)).one()
    record = dict(row._mapping)
    if kind == "kernel":
        record["files"] = _files(c, m.KernelFile, m.KernelFile.kernel, id)
    if kind == "task":
        record["files"] = _files(c, m.TaskFile, m.TaskFile.task, id)
    if kind in ("kernel", "task"):
        owner = m.Verdict.kernel if kind == "kernel" else m.Verdict.task
        record["verdicts"] = [str(v) for v in c.execute(
            select(m.Verdict.id).where(owner == id).order_by(m.Verdict.seq.desc())).scalars()]  # fmt: skip
    return record
