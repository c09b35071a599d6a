"""The migration makes what the models describe, in one transaction, from an installed package."""

import shutil
import sqlite3
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext

from tilewright.ledger import Ledger, lawfulness, models, store

ROOT = Path(__file__).parents[2]


def test_models_and_migration_agree(ledger):
    with ledger.store.read() as c:
        context = MigrationContext.configure(c, opts={"version_table": store.VERSION_TABLE, "compare_type": True})
        assert compare_metadata(context, models.Base.metadata) == []


def test_constraints_agree(ledger):
    """``compare_metadata`` does not look at CHECKs."""
    with ledger.store.read() as c:
        sql = dict(c.exec_driver_sql("SELECT name, sql FROM sqlite_master WHERE type = 'table'").fetchall())
    for table in models.Base.metadata.tables.values():
        for check in table.constraints:
            if hasattr(check, "sqltext"):
                assert f"CONSTRAINT {check.name} CHECK ({check.sqltext})" in sql[table.name]


def test_every_table_is_under_the_law():
    assert set(lawfulness.KEYS) == set(models.Base.metadata.tables)
    for name, table in models.Base.metadata.tables.items():
        assert tuple(c.name for c in table.primary_key) in lawfulness.KEYS[name]


def test_a_migration_that_fails_leaves_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(lawfulness, "law", lambda dialect: ["CREATE TRIGGER nonsense"])
    with pytest.raises(Exception, match="incomplete input"):
        Ledger.open(tmp_path / "a.sqlite")
    monkeypatch.undo()
    with sqlite3.connect(tmp_path / "a.sqlite") as c:
        assert c.execute("SELECT count(*) FROM sqlite_master").fetchone() == (0,)
    assert Ledger.open(tmp_path / "a.sqlite").latest() is None


@pytest.mark.slow
def test_works_from_a_wheel(tmp_path):
    source = tmp_path / "source"
    shutil.copytree(ROOT / "src" / "tilewright", source / "src" / "tilewright")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    pip = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "-q"]
    subprocess.run([*pip, "-w", tmp_path, source], check=True)
    zipfile.ZipFile(next(tmp_path.glob("*.whl"))).extractall(tmp_path / "site")
    code = "from tilewright.ledger import Ledger, ledger; print(ledger.__file__, Ledger.open('a.sqlite').latest())"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env={"PYTHONPATH": str(tmp_path / "site")},
                          capture_output=True, text=True)  # fmt: skip
    assert done.stdout.split() == [str(tmp_path / "site" / "tilewright" / "ledger" / "ledger.py"), "None"], done.stderr
