"""Opening: where the ledger is, and what is said when it can't be opened."""

import os
import shutil
import sqlite3
import tempfile
from pathlib import Path

import pytest

from tilewright.errors import LedgerError
from tilewright.ledger import Ledger
from tilewright.ledger.store import locate


def refusal(where, **options) -> str:
    with pytest.raises(LedgerError) as e:
        Ledger.open(where, **options)
    return str(e.value)


def test_default_place(monkeypatch, tmp_path):
    monkeypatch.delenv("TILEWRIGHT_LEDGER", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert locate(None).database.endswith("tilewright/ledger.sqlite")


def test_place_from_the_environment_and_argument_first(monkeypatch, tmp_path):
    monkeypatch.setenv("TILEWRIGHT_LEDGER", str(tmp_path / "deep" / "er" / "a.sqlite"))
    assert Ledger.open().name == str(tmp_path / "deep" / "er" / "a.sqlite")
    assert Ledger.open(tmp_path / "b.sqlite").name == str(tmp_path / "b.sqlite")
    assert Ledger.open(f"sqlite:///{tmp_path}/c.sqlite").name == str(tmp_path / "c.sqlite")


def test_urls_that_are_no_ledger():
    assert "no ledger on 'mysql'" in refusal("mysql://host/db")
    assert "'sqlite://' would forget everything" in refusal("sqlite://")
    assert "neither a path nor a database URL" in refusal("://")


def test_no_ledger_yet(tmp_path):
    text = refusal(tmp_path / "none.sqlite", create=False)
    assert f"no ledger at {tmp_path}/none.sqlite yet" in text
    assert "run `tilewright check` first" in text
    assert not (tmp_path / "none.sqlite").exists()


def test_wal_and_full_sync(ledger):
    with ledger.store.read() as c:
        assert c.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"
        assert c.exec_driver_sql("PRAGMA synchronous").scalar() == 2
        assert c.exec_driver_sql("PRAGMA foreign_keys").scalar() == 1


def test_a_folder(tmp_path):
    assert "is a folder, not a file\nTry: use" in refusal(tmp_path)


def test_a_random_file_is_left_alone(tmp_path):
    file = tmp_path / "notes.txt"
    file.write_bytes(b"some notes that are no database at all\n" * 10)
    before = file.read_bytes()
    assert f"{file} is not a Tilewright ledger: the file is not a SQLite database" in refusal(file)
    assert file.read_bytes() == before
    assert sorted(tmp_path.iterdir()) == [file]


def test_a_foreign_sqlite_database_is_left_alone(tmp_path):
    file = tmp_path / "app.db"
    connection = sqlite3.connect(file)
    connection.execute("CREATE TABLE users (name TEXT)")
    connection.commit()
    before = file.read_bytes()
    assert "is not a Tilewright ledger: a SQLite database of something else (tables: users)" in refusal(file)
    connection.close()
    with sqlite3.connect(file) as again:
        assert again.execute("SELECT name FROM sqlite_master").fetchall() == [("users",)]
    assert len(before) == file.stat().st_size


def test_an_empty_file_becomes_a_ledger(tmp_path):
    (tmp_path / "new.sqlite").touch()
    assert Ledger.open(tmp_path / "new.sqlite").latest() is None


def test_a_newer_schema(ledger):
    with sqlite3.connect(ledger.name) as c:
        c.execute("UPDATE tilewright_version SET version_num = '0042'")
    text = refusal(ledger.name)
    assert "was written by a newer Tilewright: its schema is 0042, this version knows up to 0005" in text
    assert "upgrade Tilewright" in text


def test_a_locked_ledger(ledger, sample):
    sample.record(ledger)
    other = sqlite3.connect(ledger.name, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    quick = Ledger.open(ledger.name, timeout=0.2)
    assert quick.latest() is not None, "readers don't wait"
    with pytest.raises(LedgerError, match=r"is locked by another process \(waited 0.2 s\)"):
        sample.record(quick)
    other.execute("ROLLBACK")
    sample.record(quick)


def test_a_damaged_ledger(ledger, sample):
    for _ in range(5):
        sample.record(ledger)
    size = os.path.getsize(ledger.name)
    with open(ledger.name, "r+b") as file:
        file.seek(4096)
        file.write(os.urandom(size - 4096))
    with pytest.raises(LedgerError, match="is damaged") as e:
        Ledger.open(ledger.name).latest()
    assert "restore it from a copy" in str(e.value)


@pytest.fixture
def stranger():
    """A folder that everybody can enter, and the rights of a user who owns nothing in it."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    if os.geteuid() != 0:
        yield folder, lambda on: None
    else:
        yield folder, lambda on: os.seteuid(65534 if on else 0)
        os.seteuid(0)
    shutil.rmtree(folder, ignore_errors=True)


def test_an_unreadable_file(stranger):
    folder, become = stranger
    Ledger.open(folder / "a.sqlite")
    (folder / "a.sqlite").chmod(0)
    become(True)
    text = refusal(folder / "a.sqlite")
    become(False)
    (folder / "a.sqlite").chmod(0o644)
    assert "can't be opened: permission denied\nTry: check the path and its permissions" in text


def test_a_read_only_ledger_can_be_read_and_says_why_not_written(stranger, sample):
    folder, become = stranger
    recorded = sample.record(Ledger.open(folder / "a.sqlite"))
    (folder / "a.sqlite").chmod(0o444)
    folder.chmod(0o555)
    become(True)
    try:
        reader = Ledger.open(folder / "a.sqlite")
        assert reader.latest().id == recorded.id
        with pytest.raises(LedgerError, match="can't be written: no permission to write the file or its folder"):
            sample.record(reader)
    finally:
        become(False)
        folder.chmod(0o755)


def test_a_folder_that_may_not_be_written(stranger):
    folder, become = stranger
    folder.chmod(0o555)
    become(True)
    try:
        text = refusal(folder / "a.sqlite")
        deeper = refusal(folder / "b" / "a.sqlite")
    finally:
        become(False)
        folder.chmod(0o755)
    assert "can't be opened: no permission, or the folder does not exist" in text
    assert "can't be opened: permission denied" in deeper
