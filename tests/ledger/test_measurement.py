"""Measurements and hidden workloads in the ledger, and SQL that tries to get round their law."""

import sqlite3

import pytest

from tilewright.errors import LedgerError
from tilewright.ledger import contract_hash, hidden_law, measurements
from tilewright.measure.protocol import PROTOCOL
from tilewright.measure.record import Measurement

from .law import spend

MACHINE = {"cpu": "a machine"}


def made(sample, verdict="", **changes):
    given = {
        "answer": "faster", "kernel_sha256": sample.kernel.sha256(), "task_sha256": sample.sheet.sha256(),
        "contract": contract_hash(sample.sheet, "default"), "verdict": verdict, "protocol": PROTOCOL.sha256(),
        "protocol_version": PROTOCOL.version, "variation": 0.02, "state": {"before": {"load": [0.1]}},
    }  # fmt: skip
    return Measurement(**given | changes)


@pytest.fixture
def accepted(ledger, sample):
    measurements.register_protocol(ledger.store, PROTOCOL.sha256(), PROTOCOL.version, PROTOCOL.body())
    return sample.record(ledger, "accept").id


def test_a_measurement_comes_back(ledger, sample, accepted):
    kept = measurements.record(ledger.store, made(sample, accepted), MACHINE)
    assert len(kept.id) == 12
    found = measurements.bodies(ledger.store, kernel=sample.kernel.sha256())
    assert [Measurement.model_validate(b) for b in found] == [kept]
    assert measurements.bodies(ledger.store, task="0" * 64) == []
    assert ledger.find(kept.id[:6]).kind == "measurement"


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"verdict": "0" * 12}, "accepted verdict"),
        ({"device_class": "sm_90"}, "accepted verdict"),
        ({"contract": "c" * 64}, "accepted verdict"),
        ({"kernel_sha256": "k" * 64}, "accepted verdict"),
        ({"protocol": "q" * 64}, "protocol hash is not registered"),
        ({"variation": 0.051}, "variation is not a number from 0 to 0.05"),
        ({"variation": None}, "variation is not a number"),
        ({"state": {}}, "machine state is missing"),
    ],
)
def test_the_database_refuses(ledger, sample, accepted, change, why):
    with pytest.raises(LedgerError, match=why):
        measurements.record(ledger.store, made(sample, **{"verdict": accepted} | change), MACHINE)
    assert measurements.bodies(ledger.store) == []


def test_an_attempt_comes_back_and_is_no_measurement(ledger, sample, accepted):
    noisy = made(sample, accepted, answer="too noisy", reason="it varies by 20%", variation=0.2)
    kept = measurements.attempt(ledger.store, noisy, MACHINE)
    found = ledger.find(kept.id[:6])
    assert (found.kind, found.record["answer"], found.record["reason"]) == ("attempt", "too noisy", "it varies by 20%")
    assert Measurement.model_validate_json(found.record["body"]) == kept
    assert measurements.bodies(ledger.store) == []


def test_an_answer_is_no_attempt(ledger, sample, accepted):
    with pytest.raises(LedgerError, match="what has an answer is a measurement"):
        measurements.attempt(ledger.store, made(sample, accepted, reason="because"), MACHINE)


def test_a_rejected_kernel_is_not_measured(ledger, sample, accepted):
    rejected = sample.record(ledger, "reject").id
    with pytest.raises(LedgerError, match="accepted verdict"):
        measurements.record(ledger.store, made(sample, rejected), MACHINE)


def test_a_protocol_is_what_its_hash_says(ledger):
    with pytest.raises(LedgerError, match="not what its hash says"):
        measurements.register_protocol(ledger.store, PROTOCOL.sha256(), "1", PROTOCOL.body() + " ")


def test_registering_twice_is_once(ledger):
    for _ in range(2):
        measurements.register_protocol(ledger.store, PROTOCOL.sha256(), PROTOCOL.version, PROTOCOL.body())
    with ledger.store.read() as c:
        assert c.exec_driver_sql("SELECT count(*) FROM protocols").scalar() == 1


def licence(ledger, sample, device="cpu", versions=None):
    return measurements.licence(ledger.store, sample.kernel.sha256(), sample.sheet.sha256(),
                                contract_hash(sample.sheet, "default"), device, versions)  # fmt: skip


def test_what_licenses(ledger, sample, accepted):
    assert licence(ledger, sample) == accepted
    assert licence(ledger, sample, device="sm_90") is None
    assert licence(ledger, sample, versions={"tilewright": "0.1.0"}) == accepted
    assert licence(ledger, sample, versions={"tilewright": "9.9"}) is None
    assert licence(ledger, sample, versions={"python": "9.9"}) == accepted, "a time does not hang on it"
    sample.record(ledger, "reject")
    assert licence(ledger, sample) is None, "a newer verdict took it back"


def test_hidden_workloads_are_few(ledger):
    assert spend(ledger, hidden_law.LIMIT) == list(range(1, hidden_law.LIMIT + 1))
    with pytest.raises(LedgerError, match=f"were spent {hidden_law.LIMIT} times on this already"):
        spend(ledger)
    assert measurements.hidden_spent(ledger.store, "a search") == hidden_law.LIMIT
    assert spend(ledger, 1, "another search") == [1]


USE = "INSERT INTO hidden_uses (purpose, number, kernel, task, body, created) VALUES (?, ?, 'k', 't', '{}', 'now')"


@pytest.mark.parametrize(
    ("purpose", "number", "why"),
    [
        ("a search", 1, "already has this record|without a gap"),
        ("a search", 3, "without a gap"),
        ("a search", 0, "without a gap"),
        ("a search", hidden_law.LIMIT + 1, f"{hidden_law.LIMIT} times on this already"),
        ("a search", None, "constraint failed|without a gap"),
        ("another", 2, "without a gap"),
    ],
)
def test_sql_does_not_get_round_the_count(ledger, purpose, number, why):
    spend(ledger)
    raw = sqlite3.connect(ledger.name, isolation_level=None)
    raw.execute("PRAGMA ignore_check_constraints = ON")
    with pytest.raises(sqlite3.IntegrityError, match=why):
        raw.execute(USE, (purpose, number))
    assert raw.execute("SELECT count(*) FROM hidden_uses").fetchone() == (1,)


@pytest.mark.parametrize(("revision", "later"), [("0003", ("hidden", "attempts")), ("0004", ("attempts",))])
def test_an_older_ledger_is_brought_up_to_date(tmp_path, monkeypatch, sample, revision, later):
    from tilewright.ledger import Ledger, lawfulness, store

    names = lawfulness.trigger_names("sqlite")
    with monkeypatch.context() as old:
        old.setattr(store, "REVISIONS", store.REVISIONS[: store.REVISIONS.index(revision) + 1])
        old.setattr(lawfulness, "trigger_names", lambda d: {n for n in names if not n.startswith(later)})
        old.setattr(store, "_migrate", upgrade_to(revision))
        accepted = sample.record(Ledger.open(tmp_path / "old.sqlite"), "accept").id
    book = Ledger.open(tmp_path / "old.sqlite")
    assert book.latest().verdict.accepted
    assert spend(book) == [1]
    measurements.register_protocol(book.store, PROTOCOL.sha256(), PROTOCOL.version, PROTOCOL.body())
    noisy = made(sample, accepted, answer="refused", reason="it beats the floor", variation=None)
    assert book.find(measurements.attempt(book.store, noisy, MACHINE).id).kind == "attempt"


def upgrade_to(revision):
    from pathlib import Path

    from alembic import command
    from alembic.config import Config

    from tilewright import ledger
    from tilewright.ledger import store

    def migrate(connection):
        config = Config()
        config.set_main_option("script_location", str(Path(ledger.__file__).parent / "migrations"))
        config.attributes["connection"] = connection
        config.attributes["version_table"] = store.VERSION_TABLE
        command.upgrade(config, revision)

    return migrate
