"""Records of searches: runs, proposals, nodes, failures and events, with their law."""

from typing import Any

import sqlalchemy as sa
from alembic import op

from tilewright.ledger import search_law

revision = "0003"
down_revision = "0001"

SHA, SHORT, TIME = sa.String(64), sa.String(12), sa.String(40)


def _col(name: str, kind: Any, *rest, nullable: bool = False, **more) -> sa.Column:
    return sa.Column(name, kind, *rest, nullable=nullable, **more)


def _record(name: str, *columns) -> None:
    """A table with a number of its own and the time of the record."""
    op.create_table(
        name, sa.Column("seq", sa.Integer, primary_key=True, autoincrement=True),
        sa.CheckConstraint("seq > 0", name="seq_positive"), *columns, _col("created", TIME),
    )  # fmt: skip


def _run() -> sa.Column:
    return _col("run", SHORT, sa.ForeignKey("search_runs.id"))


def _maybe(name: str, kind: Any, target: str) -> sa.Column:
    return _col(name, kind, sa.ForeignKey(target), nullable=True)


def _one_of(column: str, *allowed: str) -> sa.CheckConstraint:
    values = ", ".join(f"'{a}'" for a in allowed)
    return sa.CheckConstraint(f"{column} IN ({values})", name=f"{column}_known")


def upgrade() -> None:
    _runs()
    _trials()
    _record(
        "search_events", _run(), _col("step", sa.Integer), _col("state", sa.String(16)), _col("seconds", sa.Double),
        _col("body", sa.Text),
        _one_of("state", "asked", "declined", "proposed", "checked", "timed", "told", "finals", "final", "ended"),
    )  # fmt: skip
    op.create_index("ix_search_runs_key", "search_runs", ["key"])
    op.create_index("ix_search_events_run", "search_events", ["run"])
    connection = op.get_bind()
    for statement in search_law.law(connection.dialect.name):
        connection.exec_driver_sql(statement)


def _runs() -> None:
    _record(
        "search_runs", _col("id", SHORT, unique=True), _col("key", SHA), _col("kind", sa.String(16)),
        _col("problem", sa.Text), _col("kernel_path", sa.Text), _col("options", sa.Text),
        _one_of("kind", "measured", "replayed", "synthetic"), sa.CheckConstraint("length(id) = 12", name="id_whole"),
    )  # fmt: skip


def _trials() -> None:
    _record(
        "search_proposals", _run(), _col("step", sa.Integer), _col("code", SHA),
        _col("source", SHA, sa.ForeignKey("blobs.sha256")), _maybe("messages", SHA, "blobs.sha256"),
        _col("body", sa.Text), sa.UniqueConstraint("run", "step", name="proposals_once"),
    )  # fmt: skip
    _record(
        "search_nodes", _run(), _col("number", sa.Integer), _col("parent", sa.Integer, nullable=True),
        _col("step", sa.Integer), _maybe("kernel", SHA, "kernels.sha256"), _maybe("verdict", SHORT, "verdicts.id"),
        _maybe("measurement", SHORT, "measurements.id"), _col("ratio", sa.Double, nullable=True),
        _col("body", sa.Text), sa.UniqueConstraint("run", "number", name="nodes_once"),
        sa.CheckConstraint("ratio > 0", name="ratio_positive"),
    )  # fmt: skip
    _record(
        "search_failures", _run(), _col("number", sa.Integer), _col("kind", sa.String(16)), _col("body", sa.Text),
        sa.UniqueConstraint("run", "number", name="failures_once"),
        _one_of("kind", "compile", "launch", "wrong", "unstable", "slower", "cheating", "over floor", "timeout",
                "undecided"),
    )  # fmt: skip
