"""The ledger's tables. Every one is append-only; ``lawfulness.py`` says what the database itself refuses.

    blobs ── kernel_files ── kernels ──┐
      └───── task_files ──── tasks ────┤
                          machines ────┼── verdicts ── findings
                                       └── measurements ── protocols
    audits ── audit_events (the last event of an item is its state)

Hashes are sha256 in lower-case hexadecimal; short ids are twelve hexadecimal digits; times are UTC in ISO 8601; JSON is
kept as text, so that a record reads back byte for byte on SQLite and PostgreSQL alike.
"""

from __future__ import annotations

from sqlalchemy import CheckConstraint, Double, ForeignKey, Integer, LargeBinary, String, Text, UniqueConstraint
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from .lawfulness import VARIATION_CAP

Sha = String(64)
ShortId = String(12)


def _counted() -> CheckConstraint:
    """SQLite shows -1 to a BEFORE INSERT trigger for a number it has yet to give; nobody may take that number."""
    return CheckConstraint("seq > 0", name="seq_positive")


def _one_of(column: str, *allowed: str) -> CheckConstraint:
    values = ", ".join(f"'{a}'" for a in allowed)
    return CheckConstraint(f"{column} IN ({values})", name=f"{column}_known")


class Base(DeclarativeBase):
    """Root of the tables."""


class Blob(Base):
    """Bytes under the sha256 of what they are uncompressed; ``size`` is the uncompressed length."""

    __tablename__ = "blobs"
    sha256: Mapped[str] = mapped_column(Sha, primary_key=True)
    size: Mapped[int] = mapped_column(Integer)
    encoding: Mapped[str] = mapped_column(String(8))
    data: Mapped[bytes] = mapped_column(LargeBinary)
    __table_args__ = (_one_of("encoding", "raw", "zlib"), CheckConstraint("length(sha256) = 64", name="sha256_whole"))


class Kernel(Base):
    __tablename__ = "kernels"
    sha256: Mapped[str] = mapped_column(Sha, primary_key=True)
    language: Mapped[str] = mapped_column(String(32))
    entry: Mapped[str] = mapped_column(String(200))
    created: Mapped[str] = mapped_column(String(40))


class KernelFile(Base):
    """``name`` is relative to the entry file, which has ``position`` 0."""

    __tablename__ = "kernel_files"
    kernel: Mapped[str] = mapped_column(ForeignKey("kernels.sha256"), primary_key=True)
    name: Mapped[str] = mapped_column(String(500), primary_key=True)
    position: Mapped[int] = mapped_column(Integer)
    blob: Mapped[str] = mapped_column(ForeignKey("blobs.sha256"))


class Task(Base):
    """``sheet`` is the task sheet as JSON, without the path it was read from."""

    __tablename__ = "tasks"
    sha256: Mapped[str] = mapped_column(Sha, primary_key=True)
    name: Mapped[str] = mapped_column(String(200))
    sheet: Mapped[str] = mapped_column(Text)
    created: Mapped[str] = mapped_column(String(40))


class TaskFile(Base):
    __tablename__ = "task_files"
    task: Mapped[str] = mapped_column(ForeignKey("tasks.sha256"), primary_key=True)
    name: Mapped[str] = mapped_column(String(500), primary_key=True)
    position: Mapped[int] = mapped_column(Integer)
    blob: Mapped[str] = mapped_column(ForeignKey("blobs.sha256"))


class Machine(Base):
    """A machine as JSON, under the sha256 of that JSON."""

    __tablename__ = "machines"
    sha256: Mapped[str] = mapped_column(Sha, primary_key=True)
    body: Mapped[str] = mapped_column(Text)
    created: Mapped[str] = mapped_column(String(40))


class Verdict(Base):
    """``contract`` is the hash of the contract as judged (strict or not); ``body`` the whole verdict as JSON."""

    __tablename__ = "verdicts"
    seq: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=True)
    id: Mapped[str] = mapped_column(ShortId, unique=True)
    kernel: Mapped[str] = mapped_column(ForeignKey("kernels.sha256"))
    kernel_path: Mapped[str] = mapped_column(Text)
    task: Mapped[str] = mapped_column(ForeignKey("tasks.sha256"))
    task_path: Mapped[str] = mapped_column(Text)
    contract: Mapped[str] = mapped_column(Sha)
    device_class: Mapped[str] = mapped_column(String(64))
    mode: Mapped[str] = mapped_column(String(16))
    verdict: Mapped[str] = mapped_column(String(16))
    body: Mapped[str] = mapped_column(Text)
    versions: Mapped[str] = mapped_column(Text)
    machine: Mapped[str] = mapped_column(ForeignKey("machines.sha256"))
    created: Mapped[str] = mapped_column(String(40))
    __table_args__ = (_one_of("mode", "default", "strict"), _one_of("verdict", "accept", "reject", "incomplete"),
                      CheckConstraint("length(id) = 12", name="id_whole"), _counted())  # fmt: skip


class Finding(Base):
    """The same finding may stand in many verdicts: its id is its content's, ``(verdict, id)`` is unique."""

    __tablename__ = "findings"
    seq: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=True)
    id: Mapped[str] = mapped_column(ShortId, index=True)
    verdict: Mapped[str] = mapped_column(ForeignKey("verdicts.id"))
    gate: Mapped[str] = mapped_column(String(64))
    cls: Mapped[str] = mapped_column(String(16))
    body: Mapped[str] = mapped_column(Text)
    __table_args__ = (UniqueConstraint("verdict", "id", name="findings_once"),
                      _one_of("cls", "wrong", "cheat", "inaccurate", "deviates", "policy"), _counted())  # fmt: skip


class Audit(Base):
    """``key`` is the hash of the options: an audit with the same options goes on where the last one stopped."""

    __tablename__ = "audits"
    seq: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=True)
    id: Mapped[str] = mapped_column(ShortId, unique=True)
    key: Mapped[str] = mapped_column(Sha, index=True)
    options: Mapped[str] = mapped_column(Text)
    created: Mapped[str] = mapped_column(String(40))
    __table_args__ = (_counted(),)


class AuditEvent(Base):
    """Item ``''`` is the audit itself. ``fingerprint`` names the item's content when the event happened."""

    __tablename__ = "audit_events"
    seq: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=True)
    audit: Mapped[str] = mapped_column(ForeignKey("audits.id"), index=True)
    item: Mapped[str] = mapped_column(Text)
    fingerprint: Mapped[str] = mapped_column(String(64))
    state: Mapped[str] = mapped_column(String(16))
    verdict: Mapped[str | None] = mapped_column(ForeignKey("verdicts.id"))
    body: Mapped[str] = mapped_column(Text)
    created: Mapped[str] = mapped_column(String(40))
    __table_args__ = (_one_of("state", "planned", "started", "done", "failed"), _counted())


class Protocol(Base):
    """A measurement protocol that is allowed to speak: the hash of its code, its version, its text."""

    __tablename__ = "protocols"
    sha256: Mapped[str] = mapped_column(Sha, primary_key=True)
    version: Mapped[str] = mapped_column(String(32))
    body: Mapped[str] = mapped_column(Text)
    created: Mapped[str] = mapped_column(String(40))


class Measurement(Base):
    """``verdict`` licenses it; ``variation`` is the coefficient of variation of the paired ratio's block medians;
    ``state`` is the machine's state (clocks, temperature, load …) as a non-empty JSON object."""

    __tablename__ = "measurements"
    seq: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=True)
    id: Mapped[str] = mapped_column(ShortId, unique=True)
    verdict: Mapped[str] = mapped_column(ForeignKey("verdicts.id"))
    kernel: Mapped[str] = mapped_column(ForeignKey("kernels.sha256"))
    task: Mapped[str] = mapped_column(ForeignKey("tasks.sha256"))
    contract: Mapped[str] = mapped_column(Sha)
    device_class: Mapped[str] = mapped_column(String(64))
    machine: Mapped[str] = mapped_column(ForeignKey("machines.sha256"))
    state: Mapped[str] = mapped_column(Text)
    protocol: Mapped[str] = mapped_column(ForeignKey("protocols.sha256"))
    variation: Mapped[float] = mapped_column(Double)
    body: Mapped[str] = mapped_column(Text)
    created: Mapped[str] = mapped_column(String(40))
    __table_args__ = (
        CheckConstraint(f"variation >= 0 AND variation <= {VARIATION_CAP}", name="variation_within_cap"),
        CheckConstraint("length(state) > 2", name="state_given"),
        _counted(),
    )
