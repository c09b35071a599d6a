"""The first schema: records of sources, verdicts, findings, audits and measurements, with their law."""

from typing import Any

import sqlalchemy as sa
from alembic import op

from tilewright.ledger import lawfulness

revision = "0001"
down_revision = None

SHA, SHORT, TIME = sa.String(64), sa.String(12), sa.String(40)


def _col(name: str, kind: Any, *rest, nullable: bool = False, **more) -> sa.Column:
    return sa.Column(name, kind, *rest, nullable=nullable, **more)


def _key(name: str, kind: Any, *rest) -> sa.Column:
    return sa.Column(name, kind, *rest, primary_key=True, nullable=False)


def _seq() -> sa.Column:
    return sa.Column("seq", sa.Integer, primary_key=True, autoincrement=True)


def _counted() -> sa.CheckConstraint:
    return sa.CheckConstraint("seq > 0", name="seq_positive")


def _to(target: str) -> sa.ForeignKey:
    return sa.ForeignKey(target)


def upgrade() -> None:
    _sources()
    _verdicts()
    _audits()
    _measurements()
    op.create_index("ix_findings_id", "findings", ["id"])
    op.create_index("ix_audits_key", "audits", ["key"])
    op.create_index("ix_audit_events_audit", "audit_events", ["audit"])
    connection = op.get_bind()
    for statement in lawfulness.law(connection.dialect.name):
        connection.exec_driver_sql(statement)


def _sources() -> None:
    op.create_table(
        "blobs", _key("sha256", SHA), _col("size", sa.Integer), _col("encoding", sa.String(8)),
        _col("data", sa.LargeBinary), sa.CheckConstraint("encoding IN ('raw', 'zlib')", name="encoding_known"),
        sa.CheckConstraint("length(sha256) = 64", name="sha256_whole"),
    )  # fmt: skip
    op.create_table("kernels", _key("sha256", SHA), _col("language", sa.String(32)), _col("entry", sa.String(200)),
                    _col("created", TIME))  # fmt: skip
    op.create_table("tasks", _key("sha256", SHA), _col("name", sa.String(200)), _col("sheet", sa.Text),
                    _col("created", TIME))  # fmt: skip
    for owner in ("kernel", "task"):
        op.create_table(
            f"{owner}_files", _key(owner, SHA, _to(f"{owner}s.sha256")), _key("name", sa.String(500)),
            _col("position", sa.Integer), _col("blob", SHA, _to("blobs.sha256")),
        )  # fmt: skip
    op.create_table("machines", _key("sha256", SHA), _col("body", sa.Text), _col("created", TIME))


def _verdicts() -> None:
    op.create_table(
        "verdicts", _seq(), _counted(), _col("id", SHORT, unique=True), _col("kernel", SHA, _to("kernels.sha256")),
        _col("kernel_path", sa.Text), _col("task", SHA, _to("tasks.sha256")), _col("task_path", sa.Text),
        _col("contract", SHA), _col("device_class", sa.String(64)), _col("mode", sa.String(16)),
        _col("verdict", sa.String(16)), _col("body", sa.Text), _col("versions", sa.Text),
        _col("machine", SHA, _to("machines.sha256")), _col("created", TIME),
        sa.CheckConstraint("mode IN ('default', 'strict')", name="mode_known"),
        sa.CheckConstraint("verdict IN ('accept', 'reject', 'incomplete')", name="verdict_known"),
        sa.CheckConstraint("length(id) = 12", name="id_whole"),
    )  # fmt: skip
    op.create_table(
        "findings", _seq(), _counted(), _col("id", SHORT), _col("verdict", SHORT, _to("verdicts.id")),
        _col("gate", sa.String(64)), _col("cls", sa.String(16)), _col("body", sa.Text),
        sa.UniqueConstraint("verdict", "id", name="findings_once"),
        sa.CheckConstraint("cls IN ('wrong', 'cheat', 'inaccurate', 'deviates', 'policy')", name="cls_known"),
    )  # fmt: skip


def _audits() -> None:
    op.create_table("audits", _seq(), _counted(), _col("id", SHORT, unique=True), _col("key", SHA),
                    _col("options", sa.Text), _col("created", TIME))  # fmt: skip
    op.create_table(
        "audit_events", _seq(), _counted(), _col("audit", SHORT, _to("audits.id")), _col("item", sa.Text),
        _col("fingerprint", SHA), _col("state", sa.String(16)),
        _col("verdict", SHORT, _to("verdicts.id"), nullable=True),
        _col("body", sa.Text), _col("created", TIME),
        sa.CheckConstraint("state IN ('planned', 'started', 'done', 'failed')", name="state_known"),
    )  # fmt: skip


def _measurements() -> None:
    op.create_table("protocols", _key("sha256", SHA), _col("version", sa.String(32)), _col("body", sa.Text),
                    _col("created", TIME))  # fmt: skip
    op.create_table(
        "measurements", _seq(), _counted(), _col("id", SHORT, unique=True), _col("verdict", SHORT, _to("verdicts.id")),
        _col("kernel", SHA, _to("kernels.sha256")), _col("task", SHA, _to("tasks.sha256")), _col("contract", SHA),
        _col("device_class", sa.String(64)), _col("machine", SHA, _to("machines.sha256")), _col("state", sa.Text),
        _col("protocol", SHA, _to("protocols.sha256")), _col("variation", sa.Double), _col("body", sa.Text),
        _col("created", TIME),
        sa.CheckConstraint("variation >= 0 AND variation <= 0.05", name="variation_within_cap"),
        sa.CheckConstraint("length(state) > 2", name="state_given"),
    )  # fmt: skip
