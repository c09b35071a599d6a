"""What the database itself refuses, whoever writes to it: the ledger's law as triggers.

1. A record is never updated, deleted or replaced.
2. A measurement needs an accepted verdict of the same kernel, task, contract and class of device.
3. A measurement's variation is a number from 0 to the cap.
4. A measurement names its machine, and the machine's state is a non-empty JSON object.
5. A measurement's protocol is registered.

``search_law.py`` adds what holds for the records of a search, ``hidden_law.py`` for hidden workloads that were spent,
``attempt_law.py`` for measurements that came to nothing.

Triggers rather than constraints carry the law, because SQLite lets any connection switch foreign keys and CHECKs off;
the constraints of ``models.py`` stand beside them. SQLite's ``INSERT OR REPLACE`` deletes without firing DELETE
triggers, so an insert over an existing key is refused as well. What ``law`` returns for a version is frozen: a later
law is a later version with a migration of its own.
"""

from __future__ import annotations

from sqlalchemy import Connection, text

from . import attempt_law, hidden_law, search_law
from .append_only import MARK, postgresql, sqlite

FIRST: dict[str, tuple[tuple[str, ...], ...]] = {
    "blobs": (("sha256",),), "kernels": (("sha256",),), "kernel_files": (("kernel", "name"),),
    "tasks": (("sha256",),), "task_files": (("task", "name"),), "machines": (("sha256",),),
    "verdicts": (("seq",), ("id",)), "findings": (("seq",), ("verdict", "id")), "audits": (("seq",), ("id",)),
    "audit_events": (("seq",),), "protocols": (("sha256",),), "measurements": (("seq",), ("id",)),
}  # fmt: skip
"""The record tables of schema 0001, each with the keys under which a row is one of a kind."""
KEYS = FIRST | search_law.KEYS | hidden_law.KEYS | attempt_law.KEYS
"""All record tables."""

VARIATION_CAP = 0.05
"""Largest coefficient of variation of the block medians that may be recorded."""
LICENCE = "a measurement needs an accepted verdict of the same kernel, task, contract and device class"
PROTOCOL = "the protocol hash is not registered"
MACHINE = "the machine is not registered"
STATE = "the machine state is missing"
VARIATION = f"variation is not a number from 0 to {VARIATION_CAP}"

_LICENSED = """EXISTS (SELECT 1 FROM verdicts v WHERE v.id = NEW.verdict AND v.verdict = 'accept'
  AND v.kernel = NEW.kernel AND v.task = NEW.task AND v.contract = NEW.contract
  AND v.device_class = NEW.device_class)"""
_REGISTERED = "EXISTS (SELECT 1 FROM protocols p WHERE p.sha256 = NEW.protocol)"
_KNOWN_MACHINE = "EXISTS (SELECT 1 FROM machines m WHERE m.sha256 = NEW.machine)"


def law(dialect: str) -> list[str]:
    """The statements that put the law of schema 0001 into a database of ``dialect`` (``sqlite`` or ``postgresql``)."""
    return _postgresql() if dialect == "postgresql" else _sqlite()


def trigger_names(dialect: str) -> set[str]:
    """Names of the triggers that a lawful database has."""
    kinds = ("no_update", "no_delete", "no_truncate" if dialect == "postgresql" else "no_replace")
    return (
        {f"{table}_{kind}" for table in KEYS for kind in kinds}
        | {"measurements_lawful"}
        | search_law.TRIGGERS
        | hidden_law.TRIGGERS
        | attempt_law.TRIGGERS
    )


def missing(connection: Connection) -> set[str]:
    """Triggers that were taken out of the database; empty for a lawful one."""
    dialect = connection.dialect.name
    if dialect == "postgresql":
        query = """SELECT t.tgname FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid
                   WHERE NOT t.tgisinternal AND t.tgenabled IN ('O', 'A')
                   AND c.relnamespace = current_schema()::regnamespace"""
    else:
        query = "SELECT name FROM sqlite_master WHERE type = 'trigger'"
    return trigger_names(dialect) - {str(row[0]) for row in connection.execute(text(query))}


def _sqlite() -> list[str]:
    statements = sqlite(FIRST)
    refusals = (
        (f"NOT {_LICENSED}", LICENCE), (f"NOT {_REGISTERED}", PROTOCOL), (f"NOT {_KNOWN_MACHINE}", MACHINE),
        ("NEW.state IS NULL OR json_valid(NEW.state) = 0 OR json_type(NEW.state) <> 'object' "
         "OR json(NEW.state) = '{}'", STATE),
        ("NEW.variation IS NULL OR typeof(NEW.variation) NOT IN ('real', 'integer') OR NEW.variation < 0 "
         f"OR NEW.variation > {VARIATION_CAP}", VARIATION),
    )  # fmt: skip
    cases = " ".join(f"WHEN {when} THEN RAISE(ABORT, '{MARK}: {why}')" for when, why in refusals)
    return [*statements, f"CREATE TRIGGER measurements_lawful BEFORE INSERT ON measurements BEGIN "
                         f"SELECT CASE {cases} END; END"]  # fmt: skip


def _postgresql() -> list[str]:
    statements = [
        f"""CREATE FUNCTION tilewright_append_only() RETURNS trigger LANGUAGE plpgsql AS $law$
BEGIN RAISE EXCEPTION USING MESSAGE = '{MARK}: ' || TG_TABLE_NAME || ' is append-only'; END $law$""",
        f"""CREATE FUNCTION tilewright_measurement() RETURNS trigger LANGUAGE plpgsql AS $law$
DECLARE given jsonb;
BEGIN
  IF NOT {_LICENSED} THEN RAISE EXCEPTION '{MARK}: {LICENCE}'; END IF;
  IF NOT {_REGISTERED} THEN RAISE EXCEPTION '{MARK}: {PROTOCOL}'; END IF;
  IF NOT {_KNOWN_MACHINE} THEN RAISE EXCEPTION '{MARK}: {MACHINE}'; END IF;
  BEGIN given = NEW.state::jsonb; EXCEPTION WHEN others THEN given = NULL; END;
  IF given IS NULL OR jsonb_typeof(given) <> 'object' OR given = '{{}}'::jsonb THEN
    RAISE EXCEPTION '{MARK}: {STATE}';
  END IF;
  IF NEW.variation IS NULL OR NOT (NEW.variation >= 0 AND NEW.variation <= {VARIATION_CAP}) THEN
    RAISE EXCEPTION '{MARK}: {VARIATION}';
  END IF;
  RETURN NEW;
END $law$""",
    ]
    statements += postgresql(FIRST)
    return [*statements, "CREATE TRIGGER measurements_lawful BEFORE INSERT ON measurements "
                         "FOR EACH ROW EXECUTE FUNCTION tilewright_measurement()"]  # fmt: skip
