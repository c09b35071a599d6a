"""The table of uses of hidden workloads. ``hidden_law.py`` says what the database refuses."""

from __future__ import annotations

from sqlalchemy import Integer, String, Text, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from .models import Base, _counted


class HiddenUse(Base):
    """``purpose``: what they were spent on, a search or a kernel before a task; ``body`` says more, as JSON."""

    __tablename__ = "hidden_uses"
    seq: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=True)
    purpose: Mapped[str] = mapped_column(String(200))
    number: Mapped[int] = mapped_column(Integer)
    kernel: Mapped[str] = mapped_column(String(64))
    task: Mapped[str] = mapped_column(String(64))
    body: Mapped[str] = mapped_column(Text)
    created: Mapped[str] = mapped_column(String(40))
    __table_args__ = (UniqueConstraint("purpose", "number", name="hidden_uses_once"), _counted())
