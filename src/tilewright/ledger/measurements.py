"""Measurements in the ledger: protocols that may speak, verdicts that license, records, attempts, hidden workloads spent."""

from __future__ import annotations

import datetime
import hashlib
import json
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, func, insert, select

from ..errors import LedgerError
from . import hidden_law
from . import models as m
from .attempt_models import Attempt
from .hidden_models import HiddenUse
from .records import canonical, dumps
from .store import Store

if TYPE_CHECKING:
    from ..measure.record import Measurement

DEPENDS = ("tilewright", "torch", "triton")
"""Versions that a verdict must share with what is to be timed."""


def register_protocol(store: Store, sha256: str, version: str, body: str) -> None:
    """Let a protocol speak. ``sha256`` must be that of ``body``; registered once. Raises LedgerError for another hash."""
    if hashlib.sha256(body.encode()).hexdigest() != sha256:
        raise LedgerError(f"protocol {version} is not what its hash says", remedy="register protocol.body() as it is")
    with store.write() as c:
        if c.execute(select(m.Protocol.sha256).where(m.Protocol.sha256 == sha256)).first() is None:
            c.execute(insert(m.Protocol).values(sha256=sha256, version=version, body=body, created=_now()))


def licence(
    store: Store, kernel: str, task: str, contract: str, device_class: str, versions: Mapping[str, str] | None = None
) -> str | None:
    """Id of the newest accepted verdict of this kernel, task, contract and class of device, given under the same versions
    of what it depends on; None if there is none, or a newer verdict took it back."""
    v = m.Verdict
    same = (v.kernel == kernel, v.task == task, v.contract == contract, v.device_class == device_class)
    with store.read() as c:
        rows = c.execute(select(v.id, v.verdict, v.versions).where(*same).order_by(v.seq.desc())).all()
    for row in rows:
        known = json.loads(row.versions)
        if all(known.get(n) == x for n, x in (versions or {}).items() if n in DEPENDS and n in known):
            return str(row.id) if row.verdict == "accept" else None
    return None


def record(store: Store, measurement: Measurement, machine: Mapping[str, Any]) -> Measurement:
    """Keep a measurement; returns it with its id. The database refuses what the law forbids (LedgerError)."""
    return _keep(store, m.Measurement, measurement, machine)


def attempt(store: Store, measurement: Measurement, machine: Mapping[str, Any]) -> Measurement:
    """Keep what ended too noisy or refused, as an attempt; returns it with its id. Raises LedgerError as ``record`` does."""
    return _keep(store, Attempt, measurement, machine, answer=measurement.answer, reason=measurement.reason)


def _keep(store: Store, table: Any, what: Measurement, machine: Mapping[str, Any], **more: Any) -> Measurement:
    kept = what.model_copy(update={"id": what.id or os.urandom(6).hex(), "created": what.created or _now()})
    described = canonical(dict(machine))
    sha = hashlib.sha256(described.encode()).hexdigest()
    with store.write() as c:
        if c.execute(select(m.Machine.sha256).where(m.Machine.sha256 == sha)).first() is None:
            c.execute(insert(m.Machine).values(sha256=sha, body=described, created=kept.created))
        c.execute(insert(table).values(
            id=kept.id, verdict=kept.verdict, kernel=kept.kernel_sha256, task=kept.task_sha256, contract=kept.contract,
            device_class=kept.device_class, machine=sha, state=canonical(kept.state), protocol=kept.protocol,
            variation=kept.variation, body=dumps(kept), created=kept.created, **more,
        ))  # fmt: skip
    return kept


def bodies(
    store: Store, *, kernel: str | None = None, task: str | None = None, protocol: str | None = None
) -> list[dict[str, Any]]:
    """Measurements as JSON objects, newest first, of a kernel, a task, a protocol."""
    table = m.Measurement
    wanted = [col == value for col, value in ((table.kernel, kernel), (table.task, task), (table.protocol, protocol))
              if value is not None]  # fmt: skip
    with store.read() as c:
        rows = c.execute(select(table.body).where(*wanted).order_by(table.seq.desc())).scalars().all()
    return [json.loads(b) for b in rows]


def spend_hidden(store: Store, purpose: str, kernel: str, task: str, body: Mapping[str, Any]) -> int:
    """Count one use of hidden workloads for ``purpose``; the number it is. Raises LedgerError when they are used up."""
    with store.write() as c:
        number = 1 + _spent(c, purpose)
        if number > hidden_law.LIMIT:
            raise LedgerError(
                f"hidden workloads were spent {hidden_law.LIMIT} times on this already, the most that is allowed",
                detail="each use tells a little about them, and a kernel tuned on them proves nothing",
                remedy="measure without --hidden, or a kernel that has changed",
            )
        c.execute(insert(HiddenUse).values(purpose=purpose, number=number, kernel=kernel, task=task,
                                           body=dumps(dict(body)), created=_now()))  # fmt: skip
    return number


def hidden_spent(store: Store, purpose: str) -> int:
    """How often hidden workloads were spent on ``purpose``."""
    with store.read() as c:
        return _spent(c, purpose)


def _spent(c: Connection, purpose: str) -> int:
    return int(c.execute(select(func.count()).select_from(HiddenUse).where(HiddenUse.purpose == purpose)).scalar_one())


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat()
