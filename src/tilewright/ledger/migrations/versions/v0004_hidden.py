"""Uses of hidden workloads, counted by purpose, with their law."""

import sqlalchemy as sa
from alembic import op

from tilewright.ledger import hidden_law

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    op.create_table(
        "hidden_uses", sa.Column("seq", sa.Integer, primary_key=True, autoincrement=True),
        sa.Column("purpose", sa.String(200), nullable=False), sa.Column("number", sa.Integer, nullable=False),
        sa.Column("kernel", sa.String(64), nullable=False), sa.Column("task", sa.String(64), nullable=False),
        sa.Column("body", sa.Text, nullable=False), sa.Column("created", sa.String(40), nullable=False),
        sa.UniqueConstraint("purpose", "number", name="hidden_uses_once"),
        sa.CheckConstraint("seq > 0", name="seq_positive"),
    )  # fmt: skip
    connection = op.get_bind()
    for statement in hidden_law.law(connection.dialect.name):
        connection.exec_driver_sql(statement)
