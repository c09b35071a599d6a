"""A run in the ledger: every state of every step, so that a killed run goes on where it was.

A step writes, in this order: ``asked`` → ``declined``, or ``proposed`` → ``checked`` → ``timed`` → ``told`` (the node).
Each is one transaction. What a killed process had not written yet is done again from the last state that is there.
"""

from __future__ import annotations

import datetime
import hashlib
import json
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, insert, select

from ..errors import LedgerError
from ..ledger import Ledger
from ..ledger import search_models as m
from ..ledger.records import canonical, dumps
from .tree import Failure, Message, Node, Proposal, Tree


@dataclass
class Step:
    """All that is known of one step."""

    number: int
    states: dict[str, dict[str, Any]] = field(default_factory=dict)
    proposal: Proposal | None = None
    node: Node | None = None

    @property
    def over(self) -> bool:
        return "told" in self.states or "declined" in self.states


@dataclass(frozen=True)
class RunRecord:
    """The head of a run. ``ended`` holds its conclusion, None while it is unfinished."""

    id: str
    key: str
    kind: str
    problem: str
    kernel_path: str
    options: dict[str, Any]
    created: str
    ended: dict[str, Any] | None


class RunStore:
    """The writing side of one run. ``seconds`` is measured from event to event, within one process."""

    def __init__(self, ledger: Ledger, record: RunRecord):
        self.ledger, self.record = ledger, record
        self._since = time.monotonic()

    @property
    def id(self) -> str:
        return self.record.id

    @classmethod
    def plan(cls, ledger: Ledger, *, key: Mapping[str, Any], kind: str, problem: str, kernel_path: str,
             options: Mapping[str, Any]) -> RunStore:  # fmt: skip
        """A new run with an id, which the ledger does not know before ``keep``. ``key`` is what ``unfinished`` looks for."""
        return cls(
            ledger, RunRecord(os.urandom(6).hex(), key_of(key), kind, problem, kernel_path, dict(options), _now(), None)
        )

    @classmethod
    def create(cls, ledger: Ledger, **head: Any) -> RunStore:
        """A planned run, kept at once."""
        return cls.plan(ledger, **head).keep()

    def keep(self) -> RunStore:
        """Write the head of a planned run; from now on it can be gone on with."""
        r = self.record
        with self.ledger.store.write() as c:
            c.execute(insert(m.SearchRun).values(id=r.id, key=r.key, kind=r.kind, problem=r.problem, created=r.created,
                                                 kernel_path=r.kernel_path, options=dumps(r.options)))  # fmt: skip
        return self

    def event(self, step: int, state: str, body: Mapping[str, Any]) -> None:
        """A state with nothing else to record."""
        with self.ledger.store.write() as c:
            self._event(c, step, state, body)

    def proposed(self, step: int, proposal: Proposal) -> None:
        """Keep a proposal: its source and messages as blobs, the rest as it is."""
        data = proposal.model_dump(mode="json", exclude={"source", "messages"})
        talk = dumps([x.model_dump() for x in proposal.messages]).encode() if proposal.messages else None
        blobs = self.ledger.put_blobs([proposal.source.encode(), *([talk] if talk else [])])
        with self.ledger.store.write() as c:
            c.execute(insert(m.SearchProposal).values(
                run=self.id, step=step, code=proposal.sha256(), source=blobs[0], messages=blobs[1] if talk else None,
                body=dumps(data), created=_now()))  # fmt: skip
            self._event(c, step, "proposed", {})

    def told(self, node: Node) -> None:
        """The trial is over: the node, its failure, and the event, all or nothing."""
        body = node.model_dump(mode="json", exclude={"proposal", "number", "parent", "step", "kernel", "verdict"})
        measurement = node.timing.measurement if node.timing else ""
        with self.ledger.store.write() as c:
            c.execute(insert(m.SearchNode).values(
                run=self.id, number=node.number, parent=node.parent, step=node.step, kernel=node.kernel or None,
                verdict=node.verdict or None, measurement=measurement or None,
                ratio=node.timing.ratio if node.ok and node.timing else None, body=dumps(body), created=_now()))  # fmt: skip
            if node.failure is not None:
                c.execute(insert(m.SearchFailure).values(run=self.id, number=node.number, kind=node.failure.kind,
                                                         body=dumps(node.failure), created=_now()))  # fmt: skip
            self._event(c, node.step, "told", {"number": node.number})

    def _event(self, c: Connection, step: int, state: str, body: Mapping[str, Any]) -> None:
        now = time.monotonic()
        c.execute(insert(m.SearchEvent).values(run=self.id, step=step, state=state, body=dumps(dict(body)),
                                               seconds=now - self._since, created=_now()))  # fmt: skip
        self._since = now

    def seconds(self) -> float:
        """Wall time recorded so far, over all processes that worked on this run."""
        with self.ledger.store.read() as c:
            rows = c.execute(select(m.SearchEvent.seconds).where(m.SearchEvent.run == self.id)).scalars()
            return float(sum(rows))

    def steps(self) -> list[Step]:
        """All steps in order, as far as they got."""
        return read_steps(self.ledger, self.id)


def key_of(key: Mapping[str, Any]) -> str:
    return hashlib.sha256(canonical(dict(key)).encode()).hexdigest()


def unfinished(ledger: Ledger, key: Mapping[str, Any]) -> RunRecord | None:
    """The newest run under ``key``, unless it has ended."""
    with ledger.store.read() as c:
        newest = c.execute(select(m.SearchRun.id).where(m.SearchRun.key == key_of(key))
                           .order_by(m.SearchRun.seq.desc()).limit(1)).scalar()  # fmt: skip
    record = None if newest is None else load(ledger, newest)
    return record if record is not None and record.ended is None else None


def runs(ledger: Ledger) -> list[RunRecord]:
    """All runs, newest first."""
    with ledger.store.read() as c:
        ids = list(c.execute(select(m.SearchRun.id).order_by(m.SearchRun.seq.desc())).scalars())
    return [load(ledger, i) for i in ids]


def find(ledger: Ledger, prefix: str) -> RunRecord:
    """The run whose id begins so. Raises LedgerError for an unknown or ambiguous id."""
    with ledger.store.read() as c:
        wanted = prefix.strip().lower()
        found = list(
            c.execute(select(m.SearchRun.id).where(m.SearchRun.id.startswith(wanted, autoescape=True))).scalars()
        )
    if len(found) == 1 and wanted:
        return load(ledger, found[0])
    if not found or not wanted:
        raise LedgerError(f"the ledger {ledger.name} has no run '{prefix}'",
                          remedy="`tilewright search --list` shows them; --ledger names another ledger")  # fmt: skip
    raise LedgerError(f"run id '{prefix}' is ambiguous: {', '.join(found[:5])}", remedy="give more digits")


def load(ledger: Ledger, id: str) -> RunRecord:
    with ledger.store.read() as c:
        row = c.execute(select(m.SearchRun.__table__).where(m.SearchRun.id == id)).one()
        end = c.execute(
            select(m.SearchEvent.body).where(m.SearchEvent.run == id, m.SearchEvent.state == "ended")
        ).scalar()
    return RunRecord(id, row.key, row.kind, row.problem, row.kernel_path, json.loads(row.options), row.created,
                     None if end is None else json.loads(end))  # fmt: skip


def read_steps(ledger: Ledger, run: str) -> list[Step]:
    """All steps of a run. Sources and messages come from their blobs."""
    steps: dict[int, Step] = {}
    with ledger.store.read() as c:
        events = c.execute(
            select(m.SearchEvent.__table__).where(m.SearchEvent.run == run).order_by(m.SearchEvent.seq)
        ).all()
        proposals = c.execute(select(m.SearchProposal.__table__).where(m.SearchProposal.run == run)).all()
        nodes = c.execute(select(m.SearchNode.__table__).where(m.SearchNode.run == run)).all()
    for e in events:
        steps.setdefault(e.step, Step(e.step)).states[e.state] = json.loads(e.body)
    for p in proposals:
        steps[p.step].proposal = _proposal(ledger, p)
    for n in nodes:
        proposal = steps[n.step].proposal
        assert proposal is not None
        steps[n.step].node = Node(**json.loads(n.body), proposal=proposal, number=n.number, parent=n.parent, step=n.step,
                                  kernel=n.kernel or "", verdict=n.verdict or "")  # fmt: skip
    return [steps[n] for n in sorted(steps)]


def _proposal(ledger: Ledger, row: Any) -> Proposal:
    messages = json.loads(ledger.get_blob(row.messages)) if row.messages else []
    return Proposal(**json.loads(row.body), source=ledger.get_blob(row.source).decode(),
                    messages=tuple(Message(**x) for x in messages))  # fmt: skip


def tree_of(ledger: Ledger, run: str) -> Tree:
    """The recorded tree of a run."""
    return Tree({s.node.number: s.node for s in read_steps(ledger, run) if s.node is not None})


def failures(ledger: Ledger, run: str) -> dict[int, Failure]:
    """Failures by node."""
    return {n.number: n.failure for n in tree_of(ledger, run) if n.failure is not None}


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat()
