"""The table of attempts at a measurement. ``attempt_law.py`` says what the database refuses."""

from __future__ import annotations

from sqlalchemy import CheckConstraint, Double, ForeignKey, Integer, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from .models import Base, Sha, ShortId, _counted, _one_of


class Attempt(Base):
    """A run of ``bench`` that claims nothing. ``answer`` and ``reason``: why; ``variation``: that of the paired ratio where
    there was one, whatever it is; ``body``: all of it, in the form of a measurement."""

    __tablename__ = "attempts"
    seq: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=True)
    id: Mapped[str] = mapped_column(ShortId, unique=True)
    answer: Mapped[str] = mapped_column(String(32))
    reason: Mapped[str] = mapped_column(Text)
    verdict: Mapped[str] = mapped_column(ForeignKey("verdicts.id"))
    kernel: Mapped[str] = mapped_column(ForeignKey("kernels.sha256"))
    task: Mapped[str] = mapped_column(ForeignKey("tasks.sha256"))
    contract: Mapped[str] = mapped_column(Sha)
    device_class: Mapped[str] = mapped_column(String(64))
    machine: Mapped[str] = mapped_column(ForeignKey("machines.sha256"))
    state: Mapped[str] = mapped_column(Text)
    protocol: Mapped[str] = mapped_column(ForeignKey("protocols.sha256"))
    variation: Mapped[float | None] = mapped_column(Double)
    body: Mapped[str] = mapped_column(Text)
    created: Mapped[str] = mapped_column(String(40))
    __table_args__ = (_one_of("answer", "too noisy", "refused"),
                      CheckConstraint("length(reason) > 0", name="reason_given"),
                      CheckConstraint("length(state) > 2", name="state_given"), _counted())  # fmt: skip
