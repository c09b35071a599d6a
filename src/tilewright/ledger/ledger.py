"""The ledger: an append-only, content-addressed record of what was checked and what came out.

>>> import tempfile
>>> ledger = Ledger.open(tempfile.mkdtemp() + "/ledger.sqlite")
>>> ledger.get_blob(ledger.put_blob(b"bytes"))
b'bytes'
"""

from __future__ import annotations

import datetime
import hashlib
import os
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, insert, select

from ..errors import InternalError, LedgerError
from ..kernel.kernel import Kernel
from ..prove.finding import CaseRecord, TensorRecord
from ..prove.verdict import Verdict
from ..task.task import TaskSheet
from . import models as m
from .audits import Audit, open_audit
from .complete import with_ids, with_tensors
from .lookup import Lookup
from .records import FindingRecord, Found, VerdictRecord, canonical, contract_hash, dumps, this_machine
from .store import TIMEOUT, Store, locate

if TYPE_CHECKING:
    import torch  # costs seconds, which `tilewright show` need not spend

WORTH_COMPRESSING = 0.9


class Ledger:
    """An open ledger. Safe to use from several processes and threads at once; each call is one transaction."""

    def __init__(self, store: Store):
        self.store = store
        self._lookup = Lookup(store)

    @classmethod
    def open(
        cls, where: str | os.PathLike[str] | None = None, *, create: bool = True, timeout: float = TIMEOUT
    ) -> Ledger:
        """The ledger at a path or database URL; None: ``TILEWRIGHT_LEDGER``, else the user's data folder.

        ``create=False`` refuses to make a new file. ``timeout``: seconds to wait for another writer. Raises
        LedgerError for what can't be opened or is not a ledger.
        """
        return cls(Store(locate(where), create=create, timeout=timeout))

    @property
    def name(self) -> str:
        """Path or URL, for people."""
        return str(self.store.name)

    # blobs

    def put_blob(self, data: bytes) -> str:
        """Keep ``data``; returns its sha256. Kept once, however often it is put."""
        return self.put_blobs([data])[0]

    def put_blobs(self, many: Iterable[bytes]) -> list[str]:
        """Keep several blobs in one transaction; their sha256 in the same order."""
        hashed = [(hashlib.sha256(data).hexdigest(), data) for data in many]
        by_hash = dict(hashed)
        with self.store.read() as c:
            new = {h: by_hash[h] for h in by_hash if not _has(c, m.Blob.sha256, h)}
        if new:
            with self.store.write() as c:
                for sha, data in new.items():
                    _insert_blob(c, sha, data)
        return [sha for sha, _ in hashed]

    def get_blob(self, sha256: str) -> bytes:
        """The bytes under ``sha256``. Raises LedgerError where there are none, or they are damaged."""
        with self.store.read() as c:
            row = c.execute(select(m.Blob.encoding, m.Blob.data).where(m.Blob.sha256 == sha256)).first()
        if row is None:
            raise LedgerError(f"the ledger {self.name} has no blob {sha256[:12]}")
        try:
            data = zlib.decompress(row.data) if row.encoding == "zlib" else bytes(row.data)
        except zlib.error:
            data = b""
        if hashlib.sha256(data).hexdigest() != sha256:
            raise LedgerError(f"blob {sha256[:12]} of ledger {self.name} is damaged: its bytes don't match its hash",
                              remedy="restore the ledger from a copy")  # fmt: skip
        return data

    def save_tensor(self, tensor: torch.Tensor) -> TensorRecord:
        """``tensors.save`` into this ledger."""
        from . import tensors

        return tensors.save(tensor, self.put_blob)

    def load_tensor(self, record: TensorRecord) -> torch.Tensor:
        """``tensors.load`` from this ledger."""
        from . import tensors

        return tensors.load(record, self.get_blob)

    def load_case(self, case: CaseRecord) -> tuple[dict[str, Any], dict[str, torch.Tensor], dict[str, torch.Tensor]]:
        """Inputs (in call order), state and cotangents of a case. Raises LedgerError for values that were not kept."""
        inputs = {n: self.load_tensor(v) if isinstance(v, TensorRecord) else v for n, v in case.inputs.items()}
        state, cotangents = (
            {n: self.load_tensor(v) for n, v in part.items()} for part in (case.state, case.cotangents)
        )
        return inputs, state, cotangents

    # verdicts and findings

    def record_verdict(
        self, verdict: Verdict, kernel: Kernel, sheet: TaskSheet, files: Mapping[str, bytes], *,
        tensors: Mapping[str, Mapping[str, Mapping[str, Any]]] | None = None, device_class: str | None = None,
        machine: Mapping[str, Any] | None = None,
    ) -> Verdict:  # fmt: skip
        """Record a verdict with all it is about; returns it as recorded, with its id and those of its findings.

        ``files``: the bytes of all of the kernel's and the task's files, found by their hashes (names don't matter).
        ``tensors``: for each finding's id the tensors of its case, as ``{"inputs": {name: tensor}, "state": …,
        "cotangents": …}``; they are kept, and the case's records name their blobs.
        ``device_class``: what a measurement must match (``cpu``, ``sm_90`` …); None: the verdict's device.
        """
        kernel_sha, task_sha = kernel.sha256(), sheet.sha256()
        by_hash = {hashlib.sha256(data).hexdigest(): data for data in files.values()}
        named = with_tensors(with_ids(verdict, kernel_sha, task_sha), tensors or {}, by_hash)
        described = this_machine() if machine is None else canonical(dict(machine))
        machine_sha = hashlib.sha256(described.encode()).hexdigest()
        now = datetime.datetime.now(datetime.UTC).isoformat()
        sheet_text = dumps(sheet.model_copy(update={"path": ""}))
        with self.store.write() as c:
            for sha in {**kernel.files, **sheet.files}.values():
                if sha not in by_hash and not _has(c, m.Blob.sha256, sha):
                    raise InternalError(f"record_verdict was not given the bytes of file {sha[:12]}")
            for sha, data in by_hash.items():
                _insert_blob(c, sha, data)
            if not _has(c, m.Kernel.sha256, kernel_sha):
                c.execute(insert(m.Kernel).values(sha256=kernel_sha, language=kernel.language, entry=kernel.entry,
                                                  created=now))  # fmt: skip
                _insert_files(c, m.KernelFile, "kernel", kernel_sha, kernel.files)
            if not _has(c, m.Task.sha256, task_sha):
                c.execute(insert(m.Task).values(sha256=task_sha, name=sheet.name, sheet=sheet_text, created=now))
                _insert_files(c, m.TaskFile, "task", task_sha, sheet.files)
            if not _has(c, m.Machine.sha256, machine_sha):
                c.execute(insert(m.Machine).values(sha256=machine_sha, body=described, created=now))
            c.execute(insert(m.Verdict).values(
                id=named.id, kernel=kernel_sha, kernel_path=_absolute(kernel.path), task=task_sha,
                task_path=_absolute(sheet.path), contract=contract_hash(sheet, verdict.mode), mode=verdict.mode,
                device_class=device_class or verdict.device.split(":")[0], verdict=verdict.verdict, body=dumps(named),
                versions=dumps(dict(verdict.versions)), machine=machine_sha, created=now,
            ))  # fmt: skip
            _insert_findings(c, named)
        return named

    def verdict(self, id_prefix: str) -> VerdictRecord:
        """The verdict whose id begins so. Raises LedgerError for an unknown or ambiguous id."""
        return self._lookup.verdict(id_prefix)

    def latest(self) -> VerdictRecord | None:
        """The newest verdict; None in an empty ledger."""
        return self._lookup.latest()

    def finding(self, id_prefix: str) -> FindingRecord:
        """The finding whose id begins so, in the newest verdict that has it."""
        return self._lookup.finding(id_prefix)

    def find(self, id_prefix: str) -> Found:
        """Whatever has an id that begins so: verdict, finding, kernel, task, audit, measurement, attempt,
        search or blob."""
        return self._lookup.find(id_prefix)

    def restore(self, record: VerdictRecord, folder: Path) -> tuple[Path, Path]:
        """Write the sources of a verdict, as they were, below ``folder``; the paths of kernel and task file."""
        made = []
        for part, files, path in (("kernel", record.kernel.files, record.kernel.path),
                                  ("task", record.sheet.files, record.sheet.path)):  # fmt: skip
            for name, sha in files.items():
                relative = PurePosixPath(name)
                if relative.is_absolute() or ".." in relative.parts:
                    raise LedgerError(f"file name '{name}' in verdict {record.id} leaves its folder; not written")
                target = folder / part / relative
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(self.get_blob(sha))
            made.append(folder / part / Path(path).name)
        return made[0], made[1]

    # audits

    def audit(self, options: Mapping[str, Any], items: Mapping[str, str], *, fresh: bool = False) -> Audit:
        """An audit over ``items`` (name → fingerprint of its content): the unfinished one with the same ``options``
        goes on, unless ``fresh``; else a new one begins."""
        return open_audit(self.store, options, items, fresh=fresh)


def _absolute(path: str) -> str:
    return str(Path(path).absolute()) if path else ""


def _has(c: Connection, column: Any, value: str) -> bool:
    return c.execute(select(column).where(column == value)).first() is not None


def _insert_blob(c: Connection, sha: str, data: bytes) -> None:
    if _has(c, m.Blob.sha256, sha):
        return
    packed = zlib.compress(data, 6)
    smaller = len(packed) < WORTH_COMPRESSING * len(data)
    c.execute(insert(m.Blob).values(sha256=sha, size=len(data), encoding="zlib" if smaller else "raw",
                                    data=packed if smaller else data))  # fmt: skip


def _insert_files(c: Connection, table: Any, owner: str, sha: str, files: Mapping[str, str]) -> None:
    for position, (name, blob) in enumerate(files.items()):
        c.execute(insert(table).values({owner: sha, "name": name, "position": position, "blob": blob}))


def _insert_findings(c: Connection, verdict: Verdict) -> None:
    for finding in {f.id: f for f in reversed(verdict.findings)}.values():
        c.execute(insert(m.Finding).values(id=finding.id, verdict=verdict.id, gate=finding.gate, cls=finding.cls,
                                           body=dumps(finding)))  # fmt: skip
