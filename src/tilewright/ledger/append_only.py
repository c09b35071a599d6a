"""Triggers that make a table append-only, for every schema version that adds tables.

SQLite's ``INSERT OR REPLACE`` deletes without firing DELETE triggers, so an insert over an existing key is refused too.
"""

from __future__ import annotations

from collections.abc import Mapping

MARK = "tilewright ledger law"
Keys = Mapping[str, tuple[tuple[str, ...], ...]]


def sqlite(keys: Keys) -> list[str]:
    """Statements for SQLite: no update, no delete, no replacement under any of a table's keys."""
    statements = []
    for table, unique in keys.items():
        for kind in ("update", "delete"):
            statements.append(
                f"CREATE TRIGGER {table}_no_{kind} BEFORE {kind.upper()} ON {table} "
                f"BEGIN SELECT RAISE(ABORT, '{MARK}: {table} is append-only'); END"
            )
        same = " OR ".join("(" + " AND ".join(f"{c} = NEW.{c}" for c in key) + ")" for key in unique)
        statements.append(
            f"CREATE TRIGGER {table}_no_replace BEFORE INSERT ON {table} WHEN EXISTS (SELECT 1 FROM {table} "
            f"WHERE {same}) BEGIN SELECT RAISE(ABORT, '{MARK}: {table} already has this record'); END"
        )
    return statements


def postgresql(keys: Keys) -> list[str]:
    """Statements for PostgreSQL; they call the function ``tilewright_append_only`` of schema 0001."""
    return [
        f"CREATE TRIGGER {table}_no_{kind} BEFORE {kind.upper()} ON {table} "
        f"FOR EACH STATEMENT EXECUTE FUNCTION tilewright_append_only()"
        for table in keys for kind in ("update", "delete", "truncate")
    ]  # fmt: skip
