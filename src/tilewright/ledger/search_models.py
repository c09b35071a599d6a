"""The tables of a search. Append-only like the rest; ``search_law.py`` says what the database refuses.

search_runs ─┬─ search_events      every step's states, in order: what a killed run is rebuilt from
             ├─ search_proposals   what was proposed in a step ── blobs (source, messages)
             ├─ search_nodes       trials ── verdicts, measurements
             └─ search_failures    why a trial gained nothing
"""

from __future__ import annotations

from sqlalchemy import CheckConstraint, Double, ForeignKey, Integer, String, Text, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from .models import Base, ShortId, _counted, _one_of

KINDS = ("measured", "replayed", "synthetic")
"""How the times of a run came about: measured here, or read from a recorded run, or made up for a study."""
STATES = ("asked", "declined", "proposed", "checked", "timed", "told", "finals", "final", "ended")
FAILURES = ("compile", "launch", "wrong", "unstable", "slower", "cheating", "over floor", "timeout", "undecided")


class SearchRun(Base):
    """``key`` is the hash of task, kernel and options: what ``--resume`` looks for."""

    __tablename__ = "search_runs"
    seq: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=True)
    id: Mapped[str] = mapped_column(ShortId, unique=True)
    key: Mapped[str] = mapped_column(String(64), index=True)
    kind: Mapped[str] = mapped_column(String(16))
    problem: Mapped[str] = mapped_column(Text)
    kernel_path: Mapped[str] = mapped_column(Text)
    options: Mapped[str] = mapped_column(Text)
    created: Mapped[str] = mapped_column(String(40))
    __table_args__ = (_one_of("kind", *KINDS), CheckConstraint("length(id) = 12", name="id_whole"), _counted())


class SearchProposal(Base):
    """``code`` identifies the sources, whoever proposed them; ``body`` is the rest of the proposal as JSON."""

    __tablename__ = "search_proposals"
    seq: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=True)
    run: Mapped[str] = mapped_column(ForeignKey("search_runs.id"))
    step: Mapped[int] = mapped_column(Integer)
    code: Mapped[str] = mapped_column(String(64))
    source: Mapped[str] = mapped_column(ForeignKey("blobs.sha256"))
    messages: Mapped[str | None] = mapped_column(ForeignKey("blobs.sha256"))
    body: Mapped[str] = mapped_column(Text)
    created: Mapped[str] = mapped_column(String(40))
    __table_args__ = (UniqueConstraint("run", "step", name="proposals_once"), _counted())


class SearchNode(Base):
    """``ratio``: time of the run's yardstick over the time of this kernel; null for what was not accepted and timed."""

    __tablename__ = "search_nodes"
    seq: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=True)
    run: Mapped[str] = mapped_column(ForeignKey("search_runs.id"))
    number: Mapped[int] = mapped_column(Integer)
    parent: Mapped[int | None] = mapped_column(Integer)
    step: Mapped[int] = mapped_column(Integer)
    kernel: Mapped[str | None] = mapped_column(ForeignKey("kernels.sha256"))
    verdict: Mapped[str | None] = mapped_column(ForeignKey("verdicts.id"))
    measurement: Mapped[str | None] = mapped_column(ForeignKey("measurements.id"))
    ratio: Mapped[float | None] = mapped_column(Double)
    body: Mapped[str] = mapped_column(Text)
    created: Mapped[str] = mapped_column(String(40))
    __table_args__ = (UniqueConstraint("run", "number", name="nodes_once"),
                      CheckConstraint("ratio > 0", name="ratio_positive"), _counted())  # fmt: skip


class SearchFailure(Base):
    __tablename__ = "search_failures"
    seq: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=True)
    run: Mapped[str] = mapped_column(ForeignKey("search_runs.id"))
    number: Mapped[int] = mapped_column(Integer)
    kind: Mapped[str] = mapped_column(String(16))
    body: Mapped[str] = mapped_column(Text)
    created: Mapped[str] = mapped_column(String(40))
    __table_args__ = (UniqueConstraint("run", "number", name="failures_once"), _one_of("kind", *FAILURES), _counted())


class SearchEvent(Base):
    """``seconds``: wall time since the event before it in the same process, so that a budget survives a restart."""

    __tablename__ = "search_events"
    seq: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=True)
    run: Mapped[str] = mapped_column(ForeignKey("search_runs.id"), index=True)
    step: Mapped[int] = mapped_column(Integer)
    state: Mapped[str] = mapped_column(String(16))
    seconds: Mapped[float] = mapped_column(Double)
    body: Mapped[str] = mapped_column(Text)
    created: Mapped[str] = mapped_column(String(40))
    __table_args__ = (_one_of("state", *STATES), _counted())
