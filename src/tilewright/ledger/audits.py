"""Audits that go on where they stopped: an item's state is its last event, and events are only ever added."""

from __future__ import annotations

import datetime
import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, insert, select

from . import models as m
from .records import canonical, dumps
from .store import Store

WHOLE = ""
"""Item name of the audit itself: its event ``done`` ends the audit."""


@dataclass(frozen=True)
class AuditItem:
    """One item as its last event left it. ``body`` is what the caller kept (verdict in short, error text)."""

    name: str
    fingerprint: str
    state: str
    verdict: str | None
    body: dict[str, Any]


@dataclass(frozen=True)
class Audit:
    """A running audit. ``resumed``: an earlier process began it."""

    store: Store
    id: str
    fingerprints: dict[str, str]
    resumed: bool

    def items(self) -> dict[str, AuditItem]:
        """All items of this audit that were ever planned, by name."""
        with self.store.read() as c:
            return _states(c, self.id)

    def done(self) -> dict[str, AuditItem]:
        """Items that need no more work: done, and not changed since."""
        return {
            n: i for n, i in self.items().items() if i.state == "done" and self.fingerprints.get(n) == i.fingerprint
        }

    def pending(self) -> list[str]:
        """Names still to do, in the order given; one that failed, or whose files have changed, is to do again."""
        done = self.done()
        return [n for n in self.fingerprints if n not in done]

    def start(self, name: str) -> None:
        self._event(name, "started", None, {})

    def finish(self, name: str, verdict: str | None = None, body: Mapping[str, Any] | None = None) -> None:
        """``name`` is done; ``verdict`` is the id of its recorded verdict."""
        self._event(name, "done", verdict, body or {})

    def fail(self, name: str, body: Mapping[str, Any]) -> None:
        """``name`` gave no verdict (an error of the user's or ours); it is tried again when the audit resumes."""
        self._event(name, "failed", None, body)

    def close(self, body: Mapping[str, Any] | None = None) -> None:
        """The audit is over: the same options begin a new one next time."""
        self._event(WHOLE, "done", None, body or {})

    def _event(self, name: str, state: str, verdict: str | None, body: Mapping[str, Any]) -> None:
        with self.store.write() as c:
            _add(c, self.id, name, self.fingerprints.get(name, ""), state, verdict, body)


def open_audit(store: Store, options: Mapping[str, Any], items: Mapping[str, str], *, fresh: bool = False) -> Audit:
    """The unfinished audit with the same ``options``, or a new one; new and changed items are planned."""
    text = canonical(dict(options))
    key = hashlib.sha256(text.encode()).hexdigest()
    with store.write() as c:
        found = None if fresh else _unfinished(c, key)
        audit = found or os.urandom(6).hex()
        if found is None:
            c.execute(insert(m.Audit).values(id=audit, key=key, options=text, created=_now()))
        known = _states(c, audit)
        for name, fingerprint in items.items():
            if name not in known or known[name].fingerprint != fingerprint:
                _add(c, audit, name, fingerprint, "planned", None, {})
    return Audit(store, audit, dict(items), resumed=found is not None)


def _unfinished(c: Connection, key: str) -> str | None:
    """Newest audit under ``key`` if it did not end."""
    newest = c.execute(select(m.Audit.id).where(m.Audit.key == key).order_by(m.Audit.seq.desc()).limit(1)).scalar()
    if newest is None:
        return None
    event = m.AuditEvent
    end = select(event.seq).where(event.audit == newest, event.item == WHOLE, event.state == "done").limit(1)
    return None if c.execute(end).first() else str(newest)


def _states(c: Connection, audit: str) -> dict[str, AuditItem]:
    event = m.AuditEvent
    rows = c.execute(select(event.item, event.fingerprint, event.state, event.verdict, event.body)
                     .where(event.audit == audit, event.item != WHOLE).order_by(event.seq))  # fmt: skip
    return {r.item: AuditItem(r.item, r.fingerprint, r.state, r.verdict, json.loads(r.body)) for r in rows}


def _add(c: Connection, audit: str, item: str, fingerprint: str, state: str, verdict: str | None,
         body: Mapping[str, Any]) -> None:  # fmt: skip
    c.execute(insert(m.AuditEvent).values(audit=audit, item=item, fingerprint=fingerprint, state=state,
                                          verdict=verdict, body=dumps(dict(body)), created=_now()))  # fmt: skip


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat()
