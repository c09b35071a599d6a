"""What SQLite itself refuses, tried over a plain connection that has never heard of Tilewright."""

import sqlite3

import pytest

from tilewright.errors import LedgerError
from tilewright.ledger import Ledger

from .law import (
    ATTEMPT_COLUMNS,
    COLUMNS,
    PROTOCOL_SHA,
    TABLES,
    UNLAWFUL,
    UNLAWFUL_ATTEMPTS,
    attempted,
    lawful,
    name_of,
    search,
    spend,
)
from .samples import Sample


@pytest.fixture
def raw(ledger):
    """A plain connection with every safeguard that a connection can switch off switched off."""
    connection = sqlite3.connect(ledger.name, isolation_level=None)
    connection.execute("PRAGMA foreign_keys = OFF")
    connection.execute("PRAGMA ignore_check_constraints = ON")
    connection.execute("PRAGMA recursive_triggers = OFF")
    return connection


@pytest.fixture
def row(ledger, sample, tmp_path, raw):
    row, names = lawful(ledger, sample, Sample(tmp_path / "other", "def kernel(x, eps):\n    return x * eps\n"))
    raw.execute("INSERT INTO protocols VALUES (?, '1', 'text', 'now')", (PROTOCOL_SHA,))
    return row, names


def measure(raw, row, table="measurements", columns=COLUMNS):
    marks = ", ".join("?" * len(columns))
    raw.execute(f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({marks})", [row[c] for c in columns])


def attempt(raw, row):
    measure(raw, row, "attempts", ATTEMPT_COLUMNS)


def test_a_lawful_measurement_is_recorded(raw, row):
    measure(raw, row[0])
    assert raw.execute("SELECT count(*) FROM measurements").fetchone() == (1,)


def test_variation_at_the_cap_is_lawful(raw, row):
    measure(raw, row[0] | {"variation": 0.05})


@pytest.mark.parametrize(("change", "why"), UNLAWFUL, ids=map(name_of, UNLAWFUL))
def test_an_unlawful_measurement_is_refused(raw, row, change, why):
    good, names = row
    change = {k: names.get(v, v) if isinstance(v, str) else v for k, v in change.items()}
    with pytest.raises(sqlite3.IntegrityError, match=why):
        measure(raw, good | change)
    assert raw.execute("SELECT count(*) FROM measurements").fetchone() == (0,)


def test_variation_as_text_is_refused(raw, row):
    with pytest.raises(sqlite3.IntegrityError, match="variation is not a number"):
        measure(raw, row[0] | {"variation": "small"})


@pytest.mark.parametrize("variation", [0.02, 0.09, None])
def test_an_attempt_is_recorded_whatever_it_varies(raw, row, variation):
    attempt(raw, attempted(row[0]) | {"variation": variation})
    assert raw.execute("SELECT variation FROM attempts").fetchone() == (variation,)
    assert raw.execute("SELECT count(*) FROM measurements").fetchone() == (0,)


@pytest.mark.parametrize(("change", "why"), UNLAWFUL_ATTEMPTS, ids=map(name_of, UNLAWFUL_ATTEMPTS))
def test_an_unlawful_attempt_is_refused(raw, row, change, why):
    good, names = row
    change = {k: names.get(v, v) if isinstance(v, str) else v for k, v in change.items()}
    with pytest.raises(sqlite3.IntegrityError, match=why):
        attempt(raw, attempted(good) | change)
    assert raw.execute("SELECT count(*) FROM attempts").fetchone() == (0,)


@pytest.fixture
def full(ledger, raw, row):
    """A database with at least one row in every table."""
    measure(raw, row[0])
    attempt(raw, attempted(row[0]))
    audit = ledger.audit({"dir": "x"}, {"a": "1"})
    audit.start("a")
    search(ledger)
    spend(ledger)
    for table in TABLES:
        assert raw.execute(f"SELECT count(*) FROM {table}").fetchone()[0] > 0, table
    return raw


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("verb", ["update", "delete", "replace", "upsert"])
def test_records_are_never_changed(full, table, verb):
    before = full.execute(f"SELECT * FROM {table}").fetchall()
    columns = [c[1] for c in full.execute(f"PRAGMA table_info({table})")]
    marks = ", ".join("?" * len(columns))
    statement = {
        "update": f"UPDATE {table} SET {columns[-1]} = 'x'",
        "delete": f"DELETE FROM {table}",
        "replace": f"INSERT OR REPLACE INTO {table} VALUES ({marks})",
        "upsert": f"INSERT INTO {table} VALUES ({marks}) ON CONFLICT DO UPDATE SET {columns[-1]} = 'x'",
    }[verb]
    values = [*before[0][:-1], "x"] if verb in ("replace", "upsert") else []
    with pytest.raises(sqlite3.IntegrityError, match="ledger law"):
        full.execute(statement, values)
    assert full.execute(f"SELECT * FROM {table}").fetchall() == before


@pytest.mark.parametrize("key", ["seq", "id"])
def test_a_verdict_is_not_replaced_through_either_key(full, key):
    columns = [c[1] for c in full.execute("PRAGMA table_info(verdicts)")]
    kept = dict(zip(columns, full.execute("SELECT * FROM verdicts").fetchone(), strict=True))
    forged = kept | {"verdict": "accept", "seq": 999, "id": "f" * 12} | {key: kept[key]}
    with pytest.raises(sqlite3.IntegrityError, match="ledger law"):
        full.execute(f"REPLACE INTO verdicts VALUES ({', '.join('?' * len(columns))})", list(forged.values()))


def test_a_ledger_without_its_law_is_not_opened(ledger, raw):
    raw.execute("DROP TRIGGER verdicts_no_update")
    with pytest.raises(LedgerError, match=r"has lost its law: 1 trigger\(s\) removed \(verdicts_no_update\)"):
        Ledger.open(ledger.name)


def test_the_refusal_reaches_a_person(ledger):
    ledger.put_blob(b"x")

    def change():
        with ledger.store.write() as c:
            c.exec_driver_sql("UPDATE blobs SET size = 0")

    with pytest.raises(LedgerError, match="the ledger refused this record: blobs is append-only"):
        change()
