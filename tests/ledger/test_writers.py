"""Several writers at once, a writer that is killed, and a disk that is full: nothing recorded is lost."""

import resource
import signal
import sqlite3
import subprocess
import sys
import textwrap
import time
from contextlib import closing

import pytest
from sqlalchemy import event

from tilewright.errors import LedgerError
from tilewright.ledger import Ledger

PREAMBLE = f"""
import sys
sys.path.insert(0, {str(__file__.rsplit("/tests/", 1)[0] + "/tests")!r})
from pathlib import Path
from ledger.samples import Sample
from tilewright.ledger import Ledger
"""


def start(code: str, *arguments: str, **options) -> subprocess.Popen:
    return subprocess.Popen([sys.executable, "-c", PREAMBLE + textwrap.dedent(code), *map(str, arguments)],
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)  # fmt: skip


def check(path) -> None:
    with closing(sqlite3.connect(path)) as c:
        assert c.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert c.execute("PRAGMA foreign_key_check").fetchall() == []


def test_two_processes_write_fifty_records_each(tmp_path):
    """The file does not exist yet: both also race to create it."""
    code = """
        which, path, folder = sys.argv[1:]
        sample = Sample(Path(folder), f"def kernel(x, eps):\\n    return x + {which}\\n")
        ledger = Ledger.open(path)
        audit = ledger.audit({"which": which}, {"a": "1"})
        for i in range(50):
            ledger.put_blob(f"shared {i}".encode())
            sample.record(ledger, id=f"{which}{i:011d}")
    """
    path = tmp_path / "ledger.sqlite"
    writers = [start(code, w, path, tmp_path / w) for w in "12"]
    for w in writers:
        _, err = w.communicate(timeout=120)
        assert w.returncode == 0, err
    check(path)
    with closing(sqlite3.connect(path)) as c:
        assert c.execute("SELECT count(*) FROM verdicts").fetchone() == (100,)
        assert c.execute("SELECT count(*) FROM findings").fetchone() == (100,)
        assert c.execute("SELECT count(*) FROM blobs").fetchone() == (53,)  # 50 shared, 2 kernels, 1 problem


def test_a_killed_writer_leaves_whole_records_only(tmp_path):
    code = """
        path, folder = sys.argv[1:]
        ledger, sample = Ledger.open(path), Sample(Path(folder))
        for i in range(100000):
            print(sample.record(ledger).id, flush=True)
    """
    path = tmp_path / "ledger.sqlite"
    for round in range(3):
        writer = start(code, path, tmp_path / "s")
        told = [writer.stdout.readline().strip() for _ in range(5)]
        time.sleep(0.013 * (round + 1))
        writer.send_signal(signal.SIGKILL)
        told += writer.communicate()[0].split()
        check(path)
        ledger = Ledger.open(path)
        for id in told:
            if len(id) == 12:
                assert ledger.verdict(id).id == id
        with closing(sqlite3.connect(path)) as c:
            counts = [c.execute(f"SELECT count(*) FROM {t}").fetchone()[0] for t in ("verdicts", "findings")]
        assert counts[0] == counts[1] >= 5


def test_opening_a_ledger_keeps_the_locks_of_this_process(tmp_path, ledger, sample):
    """POSIX locks vanish when the process closes any handle of the file: opening must not open the file itself."""
    with ledger.store.write():
        Ledger.open(ledger.name)
        other = start("Ledger.open(sys.argv[1], timeout=0.1).put_blob(b'x')", ledger.name)
        _, err = other.communicate(timeout=60)
    assert "is locked by another process" in err


def test_killed_inside_a_transaction_nothing_half_is_there(tmp_path, ledger, sample):
    kept = sample.record(ledger)
    code = """
        ledger = Ledger.open(sys.argv[1])
        with ledger.store.write() as c:
            c.exec_driver_sql("INSERT INTO blobs VALUES ('" + "a" * 64 + "', 1, 'raw', zeroblob(30000000))")
            print("in", flush=True)
            sys.stdin.read()
    """
    writer = start(code, ledger.name, stdin=subprocess.PIPE)
    assert writer.stdout.readline() == "in\n"
    writer.send_signal(signal.SIGKILL)
    writer.communicate()
    check(ledger.name)
    assert ledger.verdict(kept.id).verdict == kept
    with pytest.raises(LedgerError, match="has no blob"):
        ledger.get_blob("a" * 64)
    sample.record(ledger)


def test_a_full_database(ledger, sample):
    kept = sample.record(ledger)

    @event.listens_for(ledger.store.engine, "connect")
    def _small(raw, _record):
        raw.execute("PRAGMA max_page_count = 1")  # SQLite takes the present size then

    with pytest.raises(LedgerError) as e:
        ledger.put_blob(bytes(range(256)) * 4000)
    assert f"ledger {ledger.name} can't grow: the disk is full; what was recorded before is safe" in str(e.value)
    assert "Try: free some space" in str(e.value)
    assert ledger.verdict(kept.id).verdict == kept
    check(ledger.name)


def test_a_file_that_may_not_grow(tmp_path, ledger, sample):
    kept = sample.record(ledger)
    code = """
        import os, resource
        ledger = Ledger.open(sys.argv[1])
        resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, 400_000))
        try:
            ledger.put_blob(os.urandom(2_000_000))
        except Exception as e:
            print(type(e).__name__, e)
    """
    writer = start(code, ledger.name)
    out, err = writer.communicate(timeout=60)
    assert "LedgerError" in out, (out, err)
    assert "can't be written: the disk refuses" in out or "the disk is full" in out
    check(ledger.name)
    assert ledger.verdict(kept.id).verdict == kept
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] == resource.RLIM_INFINITY
