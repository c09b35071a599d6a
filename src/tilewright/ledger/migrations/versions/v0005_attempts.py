"""Attempts at a measurement that ended too noisy or refused, with their law."""

from typing import Any

import sqlalchemy as sa
from alembic import op

from tilewright.ledger import attempt_law

revision = "0005"
down_revision = "0004"

SHA, SHORT = sa.String(64), sa.String(12)


def _col(name: str, kind: Any, *rest, nullable: bool = False, **more) -> sa.Column:
    return sa.Column(name, kind, *rest, nullable=nullable, **more)


def _to(target: str) -> sa.ForeignKey:
    return sa.ForeignKey(target)


def upgrade() -> None:
    op.create_table(
        "attempts", sa.Column("seq", sa.Integer, primary_key=True, autoincrement=True),
        _col("id", SHORT, unique=True), _col("answer", sa.String(32)), _col("reason", sa.Text),
        _col("verdict", SHORT, _to("verdicts.id")), _col("kernel", SHA, _to("kernels.sha256")),
        _col("task", SHA, _to("tasks.sha256")), _col("contract", SHA), _col("device_class", sa.String(64)),
        _col("machine", SHA, _to("machines.sha256")), _col("state", sa.Text),
        _col("protocol", SHA, _to("protocols.sha256")), _col("variation", sa.Double, nullable=True),
        _col("body", sa.Text), _col("created", sa.String(40)),
        sa.CheckConstraint("answer IN ('too noisy', 'refused')", name="answer_known"),
        sa.CheckConstraint("length(reason) > 0", name="reason_given"),
        sa.CheckConstraint("length(state) > 2", name="state_given"),
        sa.CheckConstraint("seq > 0", name="seq_positive"),
    )  # fmt: skip
    connection = op.get_bind()
    for statement in attempt_law.law(connection.dialect.name):
        connection.exec_driver_sql(statement)
