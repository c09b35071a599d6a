"""The same law and the same records on a real PostgreSQL server: ``TILEWRIGHT_TEST_POSTGRES=postgresql://…``.

Each test works in a schema of its own, dropped afterwards.
"""

import os
import subprocess
import sys
import uuid

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext

from tilewright.errors import LedgerError
from tilewright.ledger import Ledger, lawfulness, models, store

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
from .test_writers import PREAMBLE

SERVER = os.environ.get("TILEWRIGHT_TEST_POSTGRES", "")
pytestmark = pytest.mark.skipif(not SERVER, reason="TILEWRIGHT_TEST_POSTGRES names no server")


@pytest.fixture
def url():
    name = f"tilewright_{uuid.uuid4().hex[:12]}"
    server = store.locate(SERVER)
    engine = sa.create_engine(server)
    with engine.begin() as c:
        c.execute(sa.text(f"CREATE SCHEMA {name}"))
    yield server.update_query_dict({"options": f"-csearch_path={name}"}).render_as_string(hide_password=False)
    with engine.begin() as c:
        c.execute(sa.text(f"DROP SCHEMA {name} CASCADE"))
    engine.dispose()


@pytest.fixture
def ledger(url):
    return Ledger.open(url)


@pytest.fixture
def engine(url, ledger):
    """Plain connections, each statement its own transaction."""
    engine = sa.create_engine(url, isolation_level="AUTOCOMMIT", poolclass=sa.NullPool)
    with engine.connect() as c:
        c.execute(sa.text(f"INSERT INTO protocols VALUES ('{PROTOCOL_SHA}', '1', 'text', 'now')"))
    return engine


@pytest.fixture
def row(ledger, sample, tmp_path):
    return lawful(ledger, sample, Sample(tmp_path / "other", "def kernel(x, eps):\n    return x * eps\n"))


def measure(engine, row, table="measurements", columns=COLUMNS):
    marks = ", ".join(f":{c}" for c in columns)
    with engine.connect() as c:
        c.execute(sa.text(f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({marks})"), row)


def attempt(engine, row):
    measure(engine, row, "attempts", ATTEMPT_COLUMNS)


def count(engine, table):
    with engine.connect() as c:
        return c.execute(sa.text(f"SELECT count(*) FROM {table}")).scalar()


def test_a_lawful_measurement_is_recorded(engine, row):
    measure(engine, row[0])
    measure(engine, row[0] | {"id": "b" * 12, "variation": 0.05})
    assert count(engine, "measurements") == 2


@pytest.mark.parametrize(("change", "why"), UNLAWFUL, ids=map(name_of, UNLAWFUL))
def test_an_unlawful_measurement_is_refused(engine, row, change, why):
    good, names = row
    change = {k: names.get(v, v) if isinstance(v, str) else v for k, v in change.items()}
    with pytest.raises(sa.exc.DBAPIError, match=why):
        measure(engine, good | change)
    assert count(engine, "measurements") == 0


@pytest.mark.parametrize("variation", [0.02, 0.09, None])
def test_an_attempt_is_recorded_whatever_it_varies(engine, row, variation):
    attempt(engine, attempted(row[0]) | {"variation": variation})
    assert (count(engine, "attempts"), count(engine, "measurements")) == (1, 0)


@pytest.mark.parametrize(("change", "why"), UNLAWFUL_ATTEMPTS, ids=map(name_of, UNLAWFUL_ATTEMPTS))
def test_an_unlawful_attempt_is_refused(engine, row, change, why):
    good, names = row
    change = {k: names.get(v, v) if isinstance(v, str) else v for k, v in change.items()}
    with pytest.raises(sa.exc.DBAPIError, match=why):
        attempt(engine, attempted(good) | change)
    assert count(engine, "attempts") == 0


@pytest.mark.parametrize("table", TABLES)
def test_records_are_never_changed(ledger, engine, row, table):
    measure(engine, row[0])
    attempt(engine, attempted(row[0]))
    ledger.audit({"dir": "x"}, {"a": "1"}).start("a")
    search(ledger)
    spend(ledger)
    before = count(engine, table)
    assert before > 0
    column = models.Base.metadata.tables[table].columns.keys()[-1]
    keys = ", ".join(lawfulness.KEYS[table][0])
    statements = (
        f"UPDATE {table} SET {column} = {column}",
        f"DELETE FROM {table}",
        f"TRUNCATE {table} CASCADE",
        f"INSERT INTO {table} SELECT * FROM {table} ON CONFLICT ({keys}) DO UPDATE SET {column} = EXCLUDED.{column}",
    )
    for statement in statements:
        with engine.connect() as c, pytest.raises(sa.exc.DBAPIError, match="is append-only"):
            c.execute(sa.text(statement))
    assert count(engine, table) == before


@pytest.mark.parametrize(("number", "why"), [(1, "without a gap"), (3, "without a gap"), (99, "times on this already"),
                                             (None, "without a gap|null value")])  # fmt: skip
def test_hidden_workloads_are_counted(ledger, engine, number, why):
    spend(ledger)
    statement = sa.text(
        "INSERT INTO hidden_uses (purpose, number, kernel, task, body, created) "
        "VALUES ('a search', :number, 'k', 't', '{}', 'now')"
    )
    with engine.connect() as c, pytest.raises(sa.exc.DBAPIError, match=why):
        c.execute(statement, {"number": number})
    assert count(engine, "hidden_uses") == 1


def test_a_measurement_is_recorded_and_licensed(ledger, sample):
    from .test_measurement import MACHINE, PROTOCOL, licence, made, measurements

    measurements.register_protocol(ledger.store, PROTOCOL.sha256(), PROTOCOL.version, PROTOCOL.body())
    accepted = sample.record(ledger, "accept").id
    kept = measurements.record(ledger.store, made(sample, accepted), MACHINE)
    assert measurements.bodies(ledger.store)[0]["id"] == kept.id
    assert licence(ledger, sample) == accepted
    noisy = made(sample, accepted, variation=0.2, answer="too noisy", reason="it varies by 20%")
    with pytest.raises(LedgerError, match="variation is not a number"):
        measurements.record(ledger.store, noisy, MACHINE)
    assert ledger.find(measurements.attempt(ledger.store, noisy, MACHINE).id).kind == "attempt"


def test_records_come_back(ledger, sample, url):
    recorded = sample.record(ledger)
    again = Ledger.open(url)
    assert again.verdict(recorded.id[:5]).verdict == recorded
    assert again.finding(recorded.findings[0].id).finding.case.inputs == {"x": 1.5, "eps": 0.5}
    assert again.latest().id == recorded.id
    assert again.find(sample.kernel.sha256()[:8]).kind == "kernel"
    audit = again.audit({"o": 1}, {"a": "1", "b": "1"})
    audit.finish("a", recorded.id)
    assert Ledger.open(url).audit({"o": 1}, {"a": "1", "b": "1"}).pending() == ["b"]


def test_models_and_migration_agree(ledger):
    with ledger.store.read() as c:
        context = MigrationContext.configure(c, opts={"version_table": store.VERSION_TABLE})
        assert compare_metadata(context, models.Base.metadata) == []


def test_a_ledger_without_its_law_is_not_opened(engine, url):
    with engine.connect() as c:
        c.execute(sa.text("ALTER TABLE verdicts DISABLE TRIGGER verdicts_no_delete"))
    with pytest.raises(LedgerError, match=r"has lost its law: 1 trigger\(s\) removed \(verdicts_no_delete\)"):
        Ledger.open(url)


def test_a_newer_schema_and_a_foreign_one(engine, url):
    with engine.connect() as c:
        c.execute(sa.text("UPDATE tilewright_version SET version_num = '0042'"))
    with pytest.raises(LedgerError, match="its schema is 0042"):
        Ledger.open(url)
    with engine.connect() as c:
        c.execute(sa.text("DROP TABLE tilewright_version"))
    with pytest.raises(LedgerError, match="is not a Tilewright ledger: it has tables of its own called"):
        Ledger.open(url)


def test_two_processes_create_and_write(url, tmp_path):
    code = PREAMBLE + (
        "which, url, folder = sys.argv[1:]\n"
        "sample, ledger = Sample(Path(folder)), Ledger.open(url)\n"
        "for i in range(20):\n"
        "    ledger.put_blob(f'shared {i}'.encode())\n"
        "    sample.record(ledger, id=f'{which}{i:011d}')\n"
    )
    commands = [[sys.executable, "-c", code, w, url, str(tmp_path / w)] for w in "12"]
    writers = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for command in commands]
    for w in writers:
        _, err = w.communicate(timeout=120)
        assert w.returncode == 0, err
    with Ledger.open(url).store.read() as c:
        assert c.execute(sa.text("SELECT count(*) FROM verdicts")).scalar() == 40


def test_no_server_answers():
    url = store.locate(SERVER).set(host="127.0.0.1", port=1, query={}).render_as_string(hide_password=False)
    with pytest.raises(LedgerError, match="can't be reached: no database server answers there"):
        Ledger.open(url)
